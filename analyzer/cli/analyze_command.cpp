#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzer/cli/advice.h"
#include "analyzer/cli/color.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/cli/view_picture.h"
#include "analyzer/diagnose/diagnose.h"
#include "analyzer/report/build.h"
#include "analyzer/report/forecast.h"
#include "analyzer/report/json.h"
#include "analyzer/report/run.h"
#include "analyzer/report/text.h"

namespace vramtrace::cli {
namespace {

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
    app.add_flag("--explain", explain_, "Every diagnosis with what it looks for, not only those that hold");
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
    std::vector<Analyzed> run;
    for (const std::string& path : paths.value()) {
      trace::Result<report::BuiltReport> built = report::BuildReport(path, {Rows()});
      if (!built.ok()) {
        code = Fail(built.error());
        continue;
      }
      if (built.value().damaged) code = SayDamage(path, built.value().report);
      report::BuiltReport& read = built.value();
      diagnose::Diagnose({read.file, read.tables, read.stacks, read.scan}, {}, &read.report);
      run.push_back({path, std::move(read.report)});
    }
    if (run.empty()) return code;
    if (format_ == "json") {
      PrintJson(&run, paths.value().size() > 1);
    } else {
      PrintText(&run);
    }
    return code;
  }

 private:
  struct Analyzed {
    std::string path;
    report::v1::Report report;
  };

  [[nodiscard]] size_t Rows() const {
    constexpr size_t kDefaultRows = 10;
    return top_ != 0 ? top_ : format_ == "json" ? 0 : kDefaultRows;
  }

  // One object, of a run of several processes a list of them.
  static void PrintJson(std::vector<Analyzed>* run, bool list) {
    if (list) fmt::print("[\n");
    for (Analyzed& one : *run) {
      (void)Advise(one.path, &one.report);
      // Names in a trace are hostile: what is not UTF-8 is replaced rather than thrown on.
      fmt::print("{}{}\n",
                 report::ToJson(one.report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace),
                 &one != &run->back() ? "," : "");
    }
    if (list) fmt::print("]\n");
  }

  // Of several processes a line each, then the one that tells most.
  void PrintText(std::vector<Analyzed>* run) const {
    size_t chosen = 0;
    if (run->size() > 1) {
      std::vector<report::v1::Report> reports;
      for (const Analyzed& one : *run) reports.push_back(one.report);
      chosen = report::MostTelling(reports);
      fmt::print("{}\n{}\n\n", report::RunText(reports), report::WhyThisOne(reports, chosen));
    }
    Analyzed& shown = (*run)[chosen];
    const std::string advice = Advise(shown.path, &shown.report);
    fmt::print("{}", report::ToText(shown.report, {ColorWanted(), Rows()}));
    const std::string diagnosis = diagnose::Text(shown.report, {ColorWanted(), explain_});
    if (!diagnosis.empty()) fmt::print("\n{}", diagnosis);
    if (!advice.empty()) fmt::print("\n{}", advice);
  }

  static int SayDamage(const std::string& path, const report::v1::Report& report) {
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
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> MakeAnalyzeCommand() { return std::make_unique<AnalyzeCommand>(); }

}  // namespace vramtrace::cli
