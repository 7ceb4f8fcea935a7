#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzer/cli/advice.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/cli/view_picture.h"
#include "analyzer/report/build.h"
#include "analyzer/report/forecast.h"
#include "analyzer/report/json.h"
#include "analyzer/report/text.h"

namespace vramtrace::cli {
namespace {

bool ColorWanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

class AnalyzeCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "analyze"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Explain the peak of a trace, or why it ran out of memory";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace analyze vramtrace-train.py-4711.vtrace";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("trace", trace_,
                   "A trace, or the folder of a run; the newest *.vtrace here when none is given");
    app.add_option("--format", format_, "text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_option(
        "--svg", svg_,
        "Also write the timeline and the flame graph of the peak as SVG; of a run, its first trace");
    app.add_option("--top", top_, "Live allocations to list (text: 10, json: all)")
        ->check(CLI::PositiveNumber);
  }

  [[nodiscard]] int Run() override {
    const trace::Result<std::vector<std::string>> paths = ChooseTraces(trace_);
    if (!paths.ok()) return Fail(paths.error());
    if (!svg_.empty()) {
      if (const auto error = WritePicture(paths.value().front(), svg_)) return Fail(*error);
    }
    int code = kDone;
    bool first = true;
    for (const std::string& path : paths.value()) {
      if (!first && format_ == "text") fmt::print("\n");
      first = false;
      const int one = Analyze(path);
      if (one != kDone) code = one;
    }
    return code;
  }

 private:
  // Prints one report. Of a run of several processes JSON is one object a trace, one after the other.
  [[nodiscard]] int Analyze(const std::string& path) const {
    const bool json = format_ == "json";
    constexpr size_t kDefaultRows = 10;
    const size_t rows = top_ != 0 ? top_ : json ? 0 : kDefaultRows;
    trace::Result<report::BuiltReport> built = report::BuildReport(path, {rows});
    if (!built.ok()) return Fail(built.error());
    report::v1::Report& report = built.value().report;
    const std::string advice = Advise(path, &report);
    if (json) {
      // Names in a trace are hostile: what is not UTF-8 is replaced rather than thrown on.
      fmt::print("{}\n",
                 report::ToJson(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", report::ToText(report, {ColorWanted(), rows}));
      if (!advice.empty()) fmt::print("\n{}", advice);
    }
    if (!built.value().damaged) return kDone;
    for (const report::v1::Note& note : report.notes()) {
      if (note.severity() == "damage") fmt::print(stderr, "vramtrace: {}: {}\n", path, note.text());
    }
    return kBadInput;
  }

  static int Fail(const trace::Error& error) {
    fmt::print(stderr, "vramtrace: {}\n", error.Sentence());
    return kBadInput;
  }

  std::string trace_;
  std::string svg_;
  std::string format_ = "text";
  size_t top_ = 0;
};

}  // namespace

std::unique_ptr<Subcommand> MakeAnalyzeCommand() { return std::make_unique<AnalyzeCommand>(); }

}  // namespace vramtrace::cli
