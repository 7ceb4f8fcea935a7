#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "analyzer/cli/color.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/report/build.h"
#include "analyzer/report/diff.h"
#include "analyzer/report/json.h"
#include "analyzer/report/units.h"

namespace vramtrace::cli {
namespace {

class DiffCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "diff"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Compare the peaks of two traces: what grew, what is new, and why";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace diff before.vtrace after.vtrace --fail-over 100MiB";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("a", a_, "The trace to compare with")->required();
    app.add_option("b", b_, "The trace that may have grown")->required();
    app.add_option("--format", format_, "text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_option("--top", top_, "Rows of each table")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--fail-over", fail_over_,
                   "Exit with 1 where B's peak of reserved bytes is larger by more");
  }

  [[nodiscard]] int Run() override {
    std::optional<uint64_t> limit;
    if (!fail_over_.empty()) {
      limit = fail_over_ == "0" ? std::optional<uint64_t>(0) : launch::ParseSize(fail_over_);
      if (!limit) {
        fmt::print(stderr, "vramtrace diff: --fail-over {}: expected a size, such as 100MiB\n", fail_over_);
        return kUsage;
      }
    }
    const trace::Result<report::BuiltReport> a = Build(a_);
    if (!a.ok()) return Fail(a.error());
    const trace::Result<report::BuiltReport> b = Build(b_);
    if (!b.ok()) return Fail(b.error());
    const report::v1::Diff diff = report::MakeDiff(a.value().report, b.value().report);
    if (format_ == "json") {
      fmt::print("{}\n", report::ToJson(diff).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", report::DiffText(diff, {ColorWanted(), top_}));
    }
    if (a.value().damaged || b.value().damaged) return kBadInput;
    if (!limit || diff.b().reserved() <= diff.a().reserved() + *limit) return kDone;
    fmt::print(stderr, "vramtrace diff: reserved grew by {}, which is more than {}\n",
               report::Size(diff.b().reserved() - diff.a().reserved()), fail_over_);
    return kCheckFailed;
  }

 private:
  [[nodiscard]] static trace::Result<report::BuiltReport> Build(const std::string& argument) {
    const trace::Result<std::string> path = ChooseTrace(argument);
    if (!path.ok()) return path.error();
    return report::BuildReport(path.value(), {});
  }

  static int Fail(const trace::Error& error) {
    fmt::print(stderr, "vramtrace: {}\n", error.Sentence());
    return kBadInput;
  }

  std::string a_;
  std::string b_;
  std::string format_ = "text";
  size_t top_ = 10;
  std::string fail_over_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeDiffCommand() { return std::make_unique<DiffCommand>(); }

}  // namespace vramtrace::cli
