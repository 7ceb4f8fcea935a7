#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "analyzer/cli/dry_run_options.h"
#include "analyzer/cli/dry_runner.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/temporary_folder.h"
#include "analyzer/cli/program.h"
#include "analyzer/fit/placeholder.h"
#include "analyzer/fit/render.h"
#include "analyzer/fit/search.h"
#include "analyzer/fit/stream_forecaster.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;

// A dry run of a few steps takes seconds to a minute or two; one that needs ten is stuck.
constexpr std::string_view kDefaultTimeOut = "10m";

class FitCommand final : public ProgramCommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "fit"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Find the largest batch that fits a GPU: forecast from two dry runs, proved by two more";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace fit --gpu rtx4090,l4 -- python train.py --batch {batch}";
  }

  void AddOptions(CLI::App& app) override {
    ProgramCommand::AddOptions(app);
    app.add_option("--gpu", gpu_names_, "The cards, by id or name: see `vramtrace gpus`")
        ->required()
        ->delimiter(',');
    app.add_option("--total", total_text_, "Memory of the cards in place of the catalogue's");
    app.add_option("--vary", vary_, "The placeholder to vary, where the command has several");
    app.add_option("--from", from_, "The smallest value to consider")->check(CLI::Range(1UL, kMost));
    app.add_option("--to", to_, "The largest value to consider")->check(CLI::Range(1UL, kMost));
    app.add_option("--start", start_, "The smaller of the two values to forecast from")
        ->check(CLI::Range(1UL, kMost));
    app.add_option("--runs", most_runs_, "The most dry runs on one card")->check(CLI::Range(2, 1000));
    options_.AddTo(app);
    app.add_option("--keep", keep_, "Keep the traces, and what the program printed, in this folder");
    app.add_option("--format", format_, "text or json")->check(CLI::IsMember({"text", "json"}));
  }

  [[nodiscard]] int Run() override {
    const std::vector<std::string> program = Program();
    if (program.empty() || !Understand(program)) return kUsage;
    std::string why;
    const auto temporary = keep_.empty() ? launch::TemporaryFolder::Create(&why) : nullptr;
    if (keep_.empty() && temporary == nullptr) {
      Say(fmt::format("cannot make a temporary folder: {}; set TMPDIR to a folder with room", why));
      return kBadInput;
    }
    DryRunner runner(options_, keep_.empty() ? temporary->Path() : fs::absolute(keep_));
    const fit::FitReport report = fit::Search(search_, &runner,
                                              {[] { return std::make_unique<fit::StreamForecaster>(); },
                                               [] { return std::make_unique<fit::PeakForecaster>(); }},
                                              [](const std::string& line) { Say(line); });
    Print(report);
    return ExitCodeOf(report);
  }

 private:
  static constexpr uint64_t kMost = uint64_t{1} << 40;

  // Reads the options' texts. False: what is wrong has been said.
  bool Understand(const std::vector<std::string>& program) {
    auto placeholder = fit::FindPlaceholder(program, vary_);
    if (const auto* problem = std::get_if<std::string>(&placeholder)) {
      Say(fmt::format("fit: {}", *problem));
      return false;
    }
    if (from_ > to_) {
      Say(fmt::format("--from {} is above --to {}", from_, to_));
      return false;
    }
    search_.command = program;
    search_.placeholder = std::get<fit::Placeholder>(placeholder).name;
    search_.from = from_;
    search_.to = to_;
    search_.start = start_;
    search_.most_runs = most_runs_;
    return TakeCards() && options_.Understand();
  }

  bool TakeCards() {
    std::optional<uint64_t> given;
    if (!TakeSize("--total", total_text_, &given)) return false;
    for (const std::string& name : gpu_names_) {
      const catalogue::Gpu* gpu = catalogue::FindGpu(name);
      if (gpu == nullptr) {
        Say(catalogue::UnknownGpuMessage(name));
        return false;
      }
      std::string why;
      const auto totals = catalogue::TotalsOf(*gpu, &why);
      if (!totals && !given) {
        Say(why);
        return false;
      }
      search_.targets.push_back(
          {gpu, given ? *given : totals->cuda_bytes,
           given ? "given with --total" : std::string(catalogue::BasisText(totals->cuda_basis))});
    }
    return true;
  }

  void Print(const fit::FitReport& report) const {
    if (format_ == "json") {
      fmt::print("{}\n", fit::JsonOf(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", fit::TextOf(report));
    }
    if (!keep_.empty()) Say(fmt::format("the traces are in {}", keep_));
  }

  // 1: nothing fits some card, or the answer is not proved. 3: runs that do not repeat, that use no GPU or do
  // not follow the value prove nothing. A program that cannot be run passes its own status on.
  static int ExitCodeOf(const fit::FitReport& report) {
    if (report.problem) {
      switch (report.problem->kind) {
        case fit::Problem::Kind::kTimedOut:
          return launch::kExitTimeOut;
        case fit::Problem::Kind::kNoGpu:
        case fit::Problem::Kind::kNotFollowed:
          return kBadInput;
        default:
          return report.problem->exit_code != 0 ? report.problem->exit_code : kCheckFailed;
      }
    }
    if (!report.deterministic) return kBadInput;
    for (const fit::CardAnswer& answer : report.cards) {
      using Kind = fit::CardAnswer::Kind;
      if (answer.kind == Kind::kNothingFits || answer.kind == Kind::kNotProved) return kCheckFailed;
    }
    return kDone;
  }

  std::vector<std::string> gpu_names_;
  std::string total_text_;
  std::string vary_;
  uint64_t from_ = 1;
  uint64_t to_ = uint64_t{1} << 20;
  uint64_t start_ = 4;
  int most_runs_ = 24;
  DryRunOptions options_{std::string(kDefaultTimeOut)};
  std::string keep_;
  std::string format_ = "text";
  fit::SearchOptions search_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeFitCommand() { return std::make_unique<FitCommand>(); }

}  // namespace vramtrace::cli
