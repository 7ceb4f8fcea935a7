#pragma once
// Runs a native program under the preload and reads its trace.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vramtrace::tests {

using Environment = std::map<std::string, std::string>;

struct Ended {
  int status = -1;   // exit status, or 128 + the signal
  std::string text;  // standard output and error together
};

// Runs `command` (a path and its arguments) with `environment` added to this process's.
[[nodiscard]] Ended RunProgram(const std::vector<std::string>& command, const Environment& environment);

// A folder that goes away with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] std::string File(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] size_t CountFiles() const;

 private:
  std::filesystem::path path_;
};

// The environment of a recorded run: libvramtrace.so preloaded, its trace at `trace`.
[[nodiscard]] Environment Preloaded(const std::string& trace);

}  // namespace vramtrace::tests
