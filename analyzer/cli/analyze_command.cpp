#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/advice.h"
#include "analyzer/cli/color.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/cli/view_picture.h"
#include "analyzer/diagnose/diagnose.h"
#include "analyzer/report/build.h"
#include "analyzer/report/diff.h"
#include "analyzer/report/forecast.h"
#include "analyzer/report/json.h"
#include "analyzer/report/run.h"
#include "analyzer/report/text.h"
#include "analyzer/report/views_text.h"

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
    app.add_option("--top", top_, "Rows of each table (text: 10, json: all)")->check(CLI::PositiveNumber);
    app.add_option(
        "--at", at_,
        "Explain another instant than the peak or the refusal: " + std::string(timeline::InstantForms()));
    app.add_option("--diff-at", diff_at_,
                   "Compare the instant with this earlier one: what grew, what is new, what came and went")
        ->type_name("INSTANT");
    app.add_option("--by", by_,
                   "Tables of the live set instead of its largest allocations, separated by commas")
        ->delimiter(',')
        ->check(CLI::IsMember(report::ViewNames()));
    app.add_option("--folded", folded_,
                   "Also write the live set by stack for flame-graph programs, a stack a line; of a run, of "
                   "its first trace");
  }

  [[nodiscard]] int Run() override {
    for (const std::string& text : {at_, diff_at_}) {
      if (text.empty() || timeline::ParseInstant(text)) continue;
      fmt::print(stderr, "vramtrace analyze: {}: no instant; expected {}\n", text, timeline::InstantForms());
      return kUsage;
    }
    const trace::Result<std::vector<std::string>> paths = ChooseTraces(trace_);
    if (!paths.ok()) return Fail(paths.error());
    if (!svg_.empty()) {
      if (const auto error = WritePicture(paths.value().front(), svg_)) return Fail(*error);
    }
    if (!diff_at_.empty()) return Compare(paths.value().front());
    int code = kDone;
    std::vector<report::BuiltReport> run;
    for (const std::string& path : paths.value()) {
      trace::Result<report::BuiltReport> built = report::BuildReport(path, Options(at_));
      if (!built.ok()) {
        code = Fail(built.error());
        continue;
      }
      if (!at_.empty() && !HasInstant(built.value().report)) {
        code = SayNoInstant(path, at_);
        continue;
      }
      if (built.value().damaged) code = SayDamage(path, built.value().report);
      report::BuiltReport& read = built.value();
      diagnose::Diagnose({read.file, read.tables, read.stacks, read.scan}, {}, &read.report);
      run.push_back(std::move(read));
    }
    if (run.empty()) return code;
    if (!folded_.empty()) {
      if (const auto error = WriteFolded(run.front().report)) return Fail(*error);
    }
    if (format_ == "json") {
      PrintJson(&run, paths.value().size() > 1);
    } else {
      PrintText(&run);
    }
    return code;
  }

 private:
  [[nodiscard]] size_t Rows() const {
    constexpr size_t kDefaultRows = 10;
    return top_ != 0 ? top_ : format_ == "json" ? 0 : kDefaultRows;
  }

  [[nodiscard]] report::BuildOptions Options(const std::string& at) const {
    report::BuildOptions options;
    options.allocations = Rows();
    if (!at.empty()) options.at = timeline::ParseInstant(at);
    options.views = format_ == "json" || !by_.empty() || !folded_.empty();
    return options;
  }

  static bool HasInstant(const report::v1::Report& report) {
    return std::any_of(report.devices().begin(), report.devices().end(),
                       [](const report::v1::DeviceReport& device) { return device.has_at_instant(); });
  }

  static int SayNoInstant(const std::string& path, const std::string& at) {
    fmt::print(stderr, "vramtrace: {}: the trace has no instant \"{}\" on any device\n", path, at);
    return kUsage;
  }

  // Two instants of one trace.
  [[nodiscard]] int Compare(const std::string& path) const {
    std::vector<report::v1::Report> sides;
    int code = kDone;
    std::optional<report::BuiltReport> read;
    for (const std::string& at : {diff_at_, at_.empty() ? std::string("peak") : at_}) {
      report::BuildOptions options;
      options.at = timeline::ParseInstant(at);
      trace::Result<report::BuiltReport> built = report::BuildReport(path, options);
      if (!built.ok()) return Fail(built.error());
      if (!HasInstant(built.value().report)) return SayNoInstant(path, at);
      if (built.value().damaged) code = kBadInput;
      sides.push_back(built.value().report);
      read = std::move(built.value());
    }
    report::v1::Diff diff = report::MakeDiff(sides[0], sides[1]);
    const timeline::Traffic traffic =
        timeline::TrafficBetween(read->file, read->tables, read->stacks, diff.b().device(),
                                 diff.a().moment().sequence(), diff.b().moment().sequence());
    report::FillTraffic(traffic, diff.mutable_traffic());
    if (format_ == "json") {
      fmt::print("{}\n", report::ToJson(diff).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", report::DiffText(diff, {ColorWanted(), top_ != 0 ? top_ : 10}));
    }
    return code;
  }

  // The live set that is explained, of the fullest device.
  [[nodiscard]] std::optional<trace::Error> WriteFolded(const report::v1::Report& report) const {
    std::ofstream file(folded_);
    for (const report::v1::DeviceReport& device : report.devices()) {
      const report::v1::Breakdown& shown = device.has_at_instant()   ? device.at_instant()
                                           : device.has_at_refusal() ? device.at_refusal()
                                                                     : device.at_peak();
      file << report::FoldedStacks(shown.views());
    }
    file.flush();
    if (file.good()) return std::nullopt;
    return trace::Error{folded_, std::nullopt,
                        "could not be written: expected a folder that can be written to"};
  }

  // One object, of a run of several processes a list of them.
  static void PrintJson(std::vector<report::BuiltReport>* run, bool list) {
    if (list) fmt::print("[\n");
    for (report::BuiltReport& one : *run) {
      (void)Advise(&one);
      // Names in a trace are hostile: what is not UTF-8 is replaced rather than thrown on.
      fmt::print("{}{}\n",
                 report::ToJson(one.report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace),
                 &one != &run->back() ? "," : "");
    }
    if (list) fmt::print("]\n");
  }

  // Of several processes a line each, then the one that tells most.
  void PrintText(std::vector<report::BuiltReport>* run) const {
    size_t chosen = 0;
    if (run->size() > 1) {
      std::vector<report::v1::Report> reports;
      for (const report::BuiltReport& one : *run) reports.push_back(one.report);
      chosen = report::MostTelling(reports);
      fmt::print("{}\n{}\n\n", report::RunText(reports), report::WhyThisOne(reports, chosen));
    }
    report::BuiltReport& shown = (*run)[chosen];
    const std::string advice = Advise(&shown);
    fmt::print("{}", report::ToText(shown.report, {ColorWanted(), Rows(), by_}));
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
  std::string at_;
  std::string diff_at_;
  std::string folded_;
  std::vector<std::string> by_;
  size_t top_ = 0;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> MakeAnalyzeCommand() { return std::make_unique<AnalyzeCommand>(); }

}  // namespace vramtrace::cli
