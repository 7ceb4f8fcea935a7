#pragma once
// Options that every command which makes dry runs has: how long, and what the program may touch.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/dry_run.h"

namespace CLI {
class App;
}

namespace vramtrace::cli {

class DryRunOptions {
 public:
  // `time_out`: the default, as a user would write it.
  explicit DryRunOptions(std::string time_out) : time_out_text_(std::move(time_out)) {}

  void AddTo(CLI::App& app);
  // Reads the texts. False: what is wrong has been said.
  [[nodiscard]] bool Understand();

  // After Understand: puts them into a request.
  void Apply(DryRunRequest* request) const;
  [[nodiscard]] const std::string& steps() const { return steps_; }  // auto, all or a number
  [[nodiscard]] std::chrono::milliseconds time_out() const { return time_out_; }
  [[nodiscard]] const std::vector<std::filesystem::path>& folders() const { return folders_; }

 private:
  [[nodiscard]] bool TakeFolders();

  std::string steps_ = "auto";
  std::string time_out_text_;
  std::string host_memory_text_;
  std::vector<std::string> protect_;
  bool in_place_ = false;
  bool no_scratch_ = false;
  bool offline_ = false;

  std::chrono::milliseconds time_out_{};
  std::optional<uint64_t> host_memory_;
  std::vector<std::filesystem::path> folders_;  // to protect: absolute, without links
};

// Reads the size that a user gave with `option`; an empty text is none. False: it is not one, which was said.
[[nodiscard]] bool TakeSize(std::string_view option, const std::string& text, std::optional<uint64_t>* bytes);

}  // namespace vramtrace::cli
