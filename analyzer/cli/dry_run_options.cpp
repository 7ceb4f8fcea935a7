#include "analyzer/cli/dry_run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "analyzer/cli/launch/paths.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/cli/program.h"

namespace vramtrace::cli {
namespace fs = std::filesystem;

void DryRunOptions::AddTo(CLI::App& app) {
  app.add_option("--steps", steps_,
                 "Stop after this many optimizer steps; auto: after three without a new peak; all: never");
  app.add_option("--timeout", time_out_text_, "Stop after this time: 90s, 10m, 1h30m");
  app.add_flag("--in-place", in_place_, "Let the program really write where it likes");
  app.add_option("--protect", protect_, "Another folder whose files must not change (more than once)");
  app.add_flag("--no-scratch", no_scratch_,
               "Do not mount a scratch layer; stop before the first existing file is overwritten");
  app.add_flag("--offline", offline_, "Forbid Hugging Face's libraries the network, uploads included");
  app.add_option("--host-memory", host_memory_text_,
                 "Host memory that the program may use; default: what is free");
}

bool DryRunOptions::Understand() {
  if (!TakeSize("--host-memory", host_memory_text_, &host_memory_)) return false;
  const auto duration = launch::ParseDuration(time_out_text_);
  if (!duration) {
    Say(fmt::format("--timeout {}: not a time; try 90s, 10m or 1h30m", time_out_text_));
    return false;
  }
  time_out_ = *duration;
  const bool number = !steps_.empty() && steps_.size() < 10 &&
                      steps_.find_first_not_of("0123456789") == std::string::npos && std::stol(steps_) > 0;
  if (steps_ != "auto" && steps_ != "all" && !number) {
    Say(fmt::format("--steps {}: not a number of steps; try auto, all or 5", steps_));
    return false;
  }
  return TakeFolders();
}

void DryRunOptions::Apply(DryRunRequest* request) const {
  request->host_memory = host_memory_;
  request->steps = steps_;
  request->time_out = time_out_;
  request->folders = folders_;
  request->in_place = in_place_;
  request->allow_layer = !no_scratch_;
  request->offline = offline_;
}

bool DryRunOptions::TakeFolders() {
  std::error_code error;
  folders_ = {fs::canonical(fs::current_path(error), error)};
  if (error) {
    Say(fmt::format("the working folder cannot be read: {}", error.message()));
    return false;
  }
  for (const std::string& text : protect_) {
    const fs::path folder = fs::canonical(text, error);
    if (error || !fs::is_directory(folder, error)) {
      Say(fmt::format("--protect {}: no such folder", text));
      return false;
    }
    const auto covers = [&](const fs::path& other) { return launch::IsInside(folder, other); };
    if (std::none_of(folders_.begin(), folders_.end(), covers)) folders_.push_back(folder);
  }
  return true;
}

bool TakeSize(std::string_view option, const std::string& text, std::optional<uint64_t>* bytes) {
  if (text.empty()) return true;
  *bytes = launch::ParseSize(text);
  if (!*bytes) Say(fmt::format("{} {}: not a size; try 20GiB or 512MiB", option, text));
  return bytes->has_value();
}

}  // namespace vramtrace::cli
