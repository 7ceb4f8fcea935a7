#include "analyzer/cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "analyzer/cli/launch/inspect.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/report/units.h"

namespace vramtrace::cli {
namespace fs = std::filesystem;

namespace {

class ProgramFormatter final : public CLI::Formatter {
 public:
  explicit ProgramFormatter(bool optional) : optional_(optional) {}
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = Formatter::make_usage(app, std::move(name));
    while (usage.ends_with('\n')) usage.pop_back();
    return usage + (optional_ ? " [-- COMMAND [ARGUMENTS]]\n" : " -- COMMAND [ARGUMENTS]\n");
  }

 private:
  bool optional_;
};

}  // namespace

void AddProgramToUsage(CLI::App& app, bool optional) {
  app.formatter(std::make_shared<ProgramFormatter>(optional));
}

void ProgramCommand::SetProgram(const std::vector<std::string>& words) {
  has_separator_ = true;
  after_separator_ = words;
}

void ProgramCommand::AddOptions(CLI::App& app) {
  app_ = &app;
  app.prefix_command();
  AddProgramToUsage(app, false);
}

std::vector<std::string> ProgramCommand::Program() const {
  std::vector<std::string> words = app_->remaining();
  if (!words.empty() && words[0].starts_with('-')) {
    Say(fmt::format("{}: unknown option {}; options of the program go after `--`", Name(), words[0]));
    return {};
  }
  if (has_separator_) {
    if (!words.empty()) words.emplace_back("--");  // it was the program's own
    words.insert(words.end(), after_separator_.begin(), after_separator_.end());
  }
  if (words.empty() || words[0].empty()) {
    Say(fmt::format("{}: no command to run; try: {}", Name(), Example()));
    return {};
  }
  return words;
}

void Say(std::string_view line) {
  fmt::print(stderr, "vramtrace: {}\n", line);
  std::fflush(stderr);
}

namespace {

// Relative where that is shorter to read.
std::string Shown(const fs::path& path) {
  std::error_code error;
  const fs::path relative = path.lexically_relative(fs::current_path(error));
  if (error || relative.empty() || relative.begin()->string() == "..") return path.string();
  return relative.string();
}

std::string WhyNothing(std::span<const std::string> program, const launch::Environment& environment,
                       bool unwritten) {
  if (unwritten) return "the trace could not be written, as said above";
  const auto file = launch::FindCommand(program[0], environment.Get("PATH").value_or("/bin:/usr/bin"));
  std::string certain = file ? launch::WhyNotPreloadable(*file) : "";
  if (!certain.empty()) return certain;
  return "no process of this run used CUDA, or they were started without LD_PRELOAD (a container, ssh, "
         "sudo, a batch system), or are statically linked";
}

}  // namespace

LeftTraces CollectTraces(const launch::TraceOutput& output, std::span<const std::string> program,
                         const launch::Environment& environment, bool unwritten) {
  LeftTraces left{.traces = output.Find(), .folder = output.Folder(), .why_none = {}, .gathered = false};
  if (left.traces.empty()) {
    output.RemoveEmptyFolder();
    left.why_none = WhyNothing(program, environment, unwritten);
  } else if (left.traces.size() > 1) {
    left.folder = output.Gather(&left.traces);
    left.gathered = left.folder != output.Folder();
  }
  return left;
}

void SayTraces(const LeftTraces& left) {
  const std::vector<launch::Trace>& traces = left.traces;
  if (traces.empty()) {
    Say(fmt::format("nothing was recorded: {}", left.why_none));
    return;
  }
  if (traces.size() == 1) {
    const std::string name = Shown(traces[0].file);
    Say(fmt::format("the trace is {} ({})", name, report::Size(traces[0].bytes)));
    Say(fmt::format("next: vramtrace analyze {}", launch::ShellQuote(name)));
    return;
  }
  const std::string folder = Shown(left.folder);
  Say(fmt::format("{} processes were recorded, their traces are in {}:", traces.size(), folder));
  for (const launch::Trace& trace : traces) {
    Say(fmt::format("  {} ({})", trace.file.filename().string(), report::Size(trace.bytes)));
  }
  const std::string next = left.gathered ? folder : Shown(traces[0].file);
  Say(fmt::format("next: vramtrace analyze {}", launch::ShellQuote(next)));
}

void PrintSummary(nlohmann::ordered_json summary, const LeftTraces& left) {
  nlohmann::ordered_json traces = nlohmann::ordered_json::array();
  for (const launch::Trace& trace : left.traces) {
    traces.push_back({{"path", trace.file.string()}, {"bytes", trace.bytes}});
  }
  summary["traces"] = std::move(traces);
  if (!left.why_none.empty()) summary["nothing_recorded"] = left.why_none;
  fmt::print("{}\n", summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

}  // namespace vramtrace::cli
