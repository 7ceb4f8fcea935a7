#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "analyzer/cli/dry_run.h"
#include "analyzer/cli/dry_run_options.h"
#include "analyzer/cli/dry_run_summary.h"
#include "analyzer/cli/dry_run_verdict.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/cli/program.h"
#include "analyzer/forecast/bands.h"
#include "analyzer/report/build.h"
#include "analyzer/report/units.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;

// Long enough for a few steps of a 7B model with torch.compile on two cores; a dry run that needs more is
// stuck or too large for this machine.
constexpr std::string_view kDefaultTimeOut = "30m";

class DryRunCommand final : public ProgramCommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "dry-run"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Run a program on a simulated GPU: does it fit, and what fills the memory";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace dry-run --gpu rtx4090 --budget 20GiB -- python train.py";
  }

  void AddOptions(CLI::App& app) override {
    ProgramCommand::AddOptions(app);
    app.add_option("--gpu", gpu_name_, "The card, by id or name: see `vramtrace gpus`")->required();
    app.add_option("--count", count_, "How many of them the machine has")->check(CLI::Range(1, 16));
    app.add_option("--budget", budget_,
                   "Exit with 1 when the peak of device used, context included, is more than this");
    options_.AddTo(app);
    app.add_flag("--keep", keep_, "Keep what the program wrote into the scratch layer, and say where");
    app.add_option("--total", total_, "Memory of the card in place of the catalogue's");
    app.add_option("-o,--output", output_, "The trace's file or folder, as for `record`");
    app.add_option("--format", format_, "text, or json: one line on stdout, after the program's own output")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
  }

  [[nodiscard]] int Run() override {
    const std::vector<std::string> program = Program();
    if (program.empty() || !Understand()) return kUsage;
    launch::TraceOutput output(output_, launch::ProgramName(program), std::chrono::system_clock::now());
    if (const std::string problem = output.Prepare(); !problem.empty()) {
      Say(fmt::format("{}; the program runs without a trace", problem));
    }
    const DryRunRequest request = RequestFor(program);
    auto prepared = PrepareDryRun(request, output);
    if (const auto* problem = std::get_if<DryRunProblem>(&prepared)) {
      Say(problem->words);
      return problem->exit_code;
    }
    auto& ready = std::get<PreparedDryRun>(prepared);
    if (ready.dropped_visible_devices) {
      Say("CUDA_VISIBLE_DEVICES is not passed on: --gpu and --count say what the machine has");
    }
    SayStart(ready.shield);
    return Execute(request, output, &ready);
  }

 private:
  // Reads the options' texts. False: what is wrong has been said.
  bool Understand() {
    gpu_ = catalogue::FindGpu(gpu_name_);
    if (gpu_ == nullptr) {
      Say(catalogue::UnknownGpuMessage(gpu_name_));
      return false;
    }
    std::string why;
    const auto totals = catalogue::TotalsOf(*gpu_, &why);
    if (!totals && total_.empty()) {
      Say(why);
      return false;
    }
    if (!TakeSize("--budget", budget_, &budget_bytes_) || !TakeSize("--total", total_, &given_total_)) {
      return false;
    }
    total_bytes_ = given_total_.value_or(totals ? totals->cuda_bytes : 0);
    total_basis_ = given_total_ ? "given with --total" : catalogue::BasisText(totals->cuda_basis);
    return options_.Understand();
  }

  DryRunRequest RequestFor(const std::vector<std::string>& program) const {
    DryRunRequest request;
    request.program = program;
    request.gpu = gpu_;
    request.count = count_;
    request.total = given_total_;
    options_.Apply(&request);
    return request;
  }

  void SayStart(const launch::Shield& shield) const {
    Say(fmt::format("dry run on {} simulated {} with {} ({})", count_ == 1 ? "a" : std::to_string(count_),
                    gpu_->device_name, report::Size(total_bytes_), total_basis_));
    std::string where;
    for (const fs::path& folder : options_.folders())
      where += (where.empty() ? "" : " and ") + folder.string();
    switch (shield.kind) {
      case launch::ShieldKind::kScratchLayer:
        Say(fmt::format("what it writes under {} goes to a scratch layer that is {}", where,
                        keep_ ? "kept" : "dropped at the end"));
        break;
      case launch::ShieldKind::kOverwriteGuard:
        Say(
            fmt::format("new files under {} are really written; the run is stopped before an existing one is "
                        "changed (no scratch layer: {})",
                        where, shield.why_no_layer.empty() ? "--no-scratch" : shield.why_no_layer));
        break;
      case launch::ShieldKind::kNone:
        Say("--in-place: what it writes is really written");
        break;
    }
    const std::string& steps = options_.steps();
    Say(fmt::format("experiment trackers are offline; it stops {}after {}",
                    steps == "auto"  ? "after three steps without a new peak, or "
                    : steps == "all" ? ""
                                     : fmt::format("after {} steps, or ", steps),
                    launch::DurationText(options_.time_out())));
  }

  int Execute(const DryRunRequest& request, const launch::TraceOutput& output,
              PreparedDryRun* prepared) const {
    launch::Shield* shield = &prepared->shield;
    const auto executed = ExecuteDryRun(request, output, prepared);
    if (const auto* problem = std::get_if<DryRunProblem>(&executed)) {
      Say(problem->words);
      output.RemoveEmptyFolder();
      return problem->exit_code;
    }
    const auto& ending = std::get<launch::Ending>(executed);
    const DryRunFacts facts{
        .gpu_name = std::string(gpu_->device_name),
        .total_basis = total_basis_,
        .context_basis = std::string(catalogue::BasisText(catalogue::ContextOf(*gpu_).basis)),
        .processes = launch::ReadSimulatorReports(shield->Private()),
        .exit_code = launch::ExitCode(ending.wait_status),
        .stop = ending.stop,
        .budget_bytes = budget_bytes_,
        .trace = ReadTraces(output)};
    const DryRunVerdict verdict = Judge(facts);
    for (const std::string& line : verdict.lines) Say(line);
    SayScratch(shield);
    const LeftTraces left =
        CollectTraces(output, request.program, prepared->environment, /*unwritten=*/verdict.used_device);
    // That a run which was stopped left no trace is no wonder.
    if (!ending.stop || !left.traces.empty()) SayTraces(left);
    if (format_ == "json") PrintSummary(Summarise(gpu_->id, facts, verdict), left);
    if (ending.stop || verdict.exit_code != launch::ExitCode(ending.wait_status)) return verdict.exit_code;
    shield->layer.reset();  // before a signal may end this process
    shield->temporary.reset();
    return launch::PassOn(ending.wait_status);
  }

  // Of the trace with the highest peak. A trace that cannot be read is `analyze`'s to explain.
  static std::optional<TraceFacts> ReadTraces(const launch::TraceOutput& output) {
    std::optional<TraceFacts> fullest;
    for (const launch::Trace& trace : output.Find()) {
      const auto built = report::BuildReport(trace.file.string(), {.allocations = 1});
      if (!built.ok()) continue;
      for (const auto& device : built.value().report.devices()) {
        const TraceFacts facts{.steps = built.value().report.steps().completed(),
                               .peak_allocated = device.peak_allocated().bytes(),
                               .peak_reserved = device.peak_reserved().bytes(),
                               .convolutions = forecast::HasConvolutions(*built.value().tables)};
        if (!fullest || facts.peak_reserved > fullest->peak_reserved) fullest = facts;
      }
    }
    return fullest;
  }

  void SayScratch(launch::Shield* shield) const {
    if (!shield->layer) return;
    const auto written = shield->layer->Written();
    if (keep_) {
      shield->layer->Keep();
      Say(fmt::format("the program wrote {} file{} ({}), kept below {}", written.files,
                      written.files == 1 ? "" : "s", report::Size(written.bytes),
                      shield->layer->Root().string()));
    } else if (written.files > 0) {
      Say(fmt::format(
          "the program wrote {} files ({}) into the scratch layer, dropped now; --keep keeps them",
          written.files, report::Size(written.bytes)));
    }
  }

  std::string gpu_name_;
  int count_ = 1;
  std::string budget_;
  DryRunOptions options_{std::string(kDefaultTimeOut)};
  bool keep_ = false;
  std::string total_;
  std::string output_;
  std::string format_ = "text";

  const catalogue::Gpu* gpu_ = nullptr;
  std::optional<uint64_t> budget_bytes_, given_total_;
  uint64_t total_bytes_ = 0;
  std::string total_basis_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeDryRunCommand() { return std::make_unique<DryRunCommand>(); }

}  // namespace vramtrace::cli
