#pragma once
// A private folder for one run, mode 0700, removed at the end.

#include <filesystem>
#include <memory>
#include <string>

namespace vramtrace::launch {

class TemporaryFolder {
 public:
  // In TMPDIR, else /tmp. Null and `why` when none can be made.
  [[nodiscard]] static std::unique_ptr<TemporaryFolder> Create(std::string* why);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& Path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace vramtrace::launch
