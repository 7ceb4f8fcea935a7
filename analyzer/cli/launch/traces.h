#pragma once
// Where the traces of one run go, and which they were.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace vramtrace::launch {

// What people call the program: train for `python -u train.py`, pkg.train for `python -m pkg.train`, else the
// command's file name. Only letters, digits and ._- ; at most 64 characters.
[[nodiscard]] std::string ProgramName(std::span<const std::string> command);

struct Trace {
  std::filesystem::path file;
  uint64_t bytes = 0;
};

class TraceOutput {
 public:
  // `asked` as given to -o: empty, a file, or a folder (it exists, or ends in a slash; it is made). A file
  // name may hold the recorder's %p (process id), %r (rank) and the like. `start` names the run.
  TraceOutput(std::string_view asked, std::string_view program, std::chrono::system_clock::time_point start);

  // Makes the folder if it is not there, and remembers what is in it already. A problem is a sentence with
  // the remedy: the program can run, but nothing will be recorded.
  [[nodiscard]] std::string Prepare();
  // Takes a folder that Prepare made away again, if nothing was written.
  void RemoveEmptyFolder() const;

  [[nodiscard]] const std::filesystem::path& Folder() const { return folder_; }  // absolute
  // The value of VRAMTRACE_OUTPUT, with the folder seen as `folder`.
  [[nodiscard]] std::string Pattern(const std::filesystem::path& folder) const;
  [[nodiscard]] std::string Pattern() const { return Pattern(folder_); }

  // Traces that this run wrote, oldest name first. A file that was there before and has not changed is not
  // ours.
  [[nodiscard]] std::vector<Trace> Find() const;

  // When nothing was asked and a run left several traces, moves them into a folder of their own, which is
  // how a run of several processes is passed to `analyze`. Returns that folder, or Folder() when they stay.
  [[nodiscard]] std::filesystem::path Gather(std::vector<Trace>* traces) const;

 private:
  struct Known {
    uint64_t inode, bytes;
    std::filesystem::file_time_type changed;
    bool operator==(const Known&) const = default;
  };
  [[nodiscard]] bool Matches(const std::string& name) const;
  [[nodiscard]] static Known Look(const std::filesystem::path& file);

  std::filesystem::path folder_;
  std::string name_;
  std::string run_;  // name of the folder that Gather makes; empty when the user chose
  bool made_folder_ = false;
  std::map<std::filesystem::path, Known> before_;
};

}  // namespace vramtrace::launch
