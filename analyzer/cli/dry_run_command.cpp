#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "analyzer/cli/dry_run_verdict.h"
#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/host_memory.h"
#include "analyzer/cli/launch/installation.h"
#include "analyzer/cli/launch/paths.h"
#include "analyzer/cli/launch/shield.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/supervise.h"
#include "analyzer/cli/launch/trackers.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/cli/program.h"
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
    app.add_option("--steps", steps_,
                   "Stop after this many optimizer steps; auto: after three without a new peak; all: never");
    app.add_option("--timeout", time_out_, "Stop after this time: 90s, 10m, 1h30m");
    app.add_flag("--in-place", in_place_, "Let the program really write where it likes");
    app.add_option("--protect", protect_, "Another folder whose files must not change (more than once)");
    app.add_flag("--keep", keep_, "Keep what the program wrote into the scratch layer, and say where");
    app.add_flag("--no-scratch", no_scratch_,
                 "Do not mount a scratch layer; stop before the first existing file is overwritten");
    app.add_flag("--offline", offline_, "Forbid Hugging Face's libraries the network, uploads included");
    app.add_option("--total", total_, "Memory of the card in place of the catalogue's");
    app.add_option("--host-memory", host_memory_,
                   "Host memory that the program may use; default: what is free");
    app.add_option("-o,--output", output_, "The trace's file or folder, as for `record`");
  }

  [[nodiscard]] int Run() override {
    const std::vector<std::string> program = Program();
    if (program.empty() || !Understand()) return kUsage;
    launch::TraceOutput output(output_, launch::ProgramName(program), std::chrono::system_clock::now());
    if (const std::string problem = output.Prepare(); !problem.empty()) {
      Say(fmt::format("{}; the program runs without a trace", problem));
    }
    std::string problem;
    launch::Shield shield = launch::RaiseShield(
        {.folders = folders_, .output = output.Folder(), .in_place = in_place_, .allow_layer = !no_scratch_},
        &problem);
    if (!problem.empty()) {
      Say(problem);
      return kUsage;
    }
    launch::Environment environment(environ);
    if (!Prepare(shield, output, &environment)) return kBadInput;
    SayStart(shield);
    return Execute(program, output, &shield, &environment);
  }

 private:
  struct Limits {
    std::optional<uint64_t> budget, total, host_memory;
    std::chrono::milliseconds time_out{};
  };

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
    const bool sizes = TakeSize("--budget", budget_, &limits_.budget) &&
                       TakeSize("--total", total_, &limits_.total) &&
                       TakeSize("--host-memory", host_memory_, &limits_.host_memory);
    if (!sizes) return false;
    total_bytes_ = limits_.total.value_or(totals ? totals->cuda_bytes : 0);
    total_basis_ = limits_.total ? "given with --total" : catalogue::BasisText(totals->cuda_basis);

    const auto duration = launch::ParseDuration(time_out_);
    if (!duration) {
      Say(fmt::format("--timeout {}: not a time; try 90s, 10m or 1h30m", time_out_));
      return false;
    }
    limits_.time_out = *duration;
    const bool number = !steps_.empty() && steps_.size() < 10 &&
                        steps_.find_first_not_of("0123456789") == std::string::npos && std::stol(steps_) > 0;
    if (steps_ != "auto" && steps_ != "all" && !number) {
      Say(fmt::format("--steps {}: not a number of steps; try auto, all or 5", steps_));
      return false;
    }
    return TakeFolders();
  }

  static bool TakeSize(std::string_view option, const std::string& text, std::optional<uint64_t>* bytes) {
    if (text.empty()) return true;
    *bytes = launch::ParseSize(text);
    if (!*bytes) Say(fmt::format("{} {}: not a size; try 20GiB or 512MiB", option, text));
    return bytes->has_value();
  }

  bool TakeFolders() {
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

  bool Prepare(const launch::Shield& shield, const launch::TraceOutput& output,
               launch::Environment* environment) const {
    const auto libraries = launch::FindLibraryFolder(launch::ThisExecutable());
    if (!libraries.ok()) {
      Say(fmt::format("{}: {}", libraries.error().file, libraries.error().message));
      return false;
    }
    const auto simulator = launch::FindSimulator(libraries.value());
    if (!simulator.ok()) {
      Say(fmt::format("{}: {}", simulator.error().file, simulator.error().message));
      return false;
    }
    std::vector<std::string> preloads = {launch::RecorderIn(libraries.value()).string()};
    preloads.insert(preloads.end(), simulator.value().libraries.begin(), simulator.value().libraries.end());
    if (const auto bad = environment->Preload(preloads)) {
      Say(fmt::format(
          "{}: the loader cannot preload a path with spaces or colons; install vramtrace elsewhere", *bad));
      return false;
    }
    environment->Set("VRAMTRACE_OUTPUT",
                     shield.layer ? output.Pattern(shield.layer->OutputInside()) : output.Pattern());
    environment->Set("VRAMTRACE_DRY_RUN", "1");
    // Where it is not set, the program runs to its own end.
    environment->Remove("VRAMTRACE_DRY_RUN_STEPS");
    if (steps_ != "all") environment->Set("VRAMTRACE_DRY_RUN_STEPS", steps_);
    environment->Set("VRAMTRACE_SIM_GPU", gpu_->id);
    environment->Set("VRAMTRACE_SIM_COUNT", std::to_string(count_));
    if (limits_.total) environment->Set("VRAMTRACE_SIM_TOTAL", std::to_string(*limits_.total));
    environment->Set("VRAMTRACE_SIM_REPORT", launch::SimulatorReportPattern(shield.Private()));
    environment->Set("TRITON_LIBCUDA_PATH", simulator.value().folder.string());
    if (environment->Get("CUDA_VISIBLE_DEVICES")) {
      environment->Remove("CUDA_VISIBLE_DEVICES");
      Say("CUDA_VISIBLE_DEVICES is not passed on: --gpu and --count say what the machine has");
    }
    launch::SetTrackersOffline(shield.Private(), environment);
    if (offline_) launch::SetHubOffline(environment);
    return true;
  }

  void SayStart(const launch::Shield& shield) const {
    Say(fmt::format("dry run on {} simulated {} with {} ({})", count_ == 1 ? "a" : std::to_string(count_),
                    gpu_->device_name, report::Size(total_bytes_), total_basis_));
    std::string where;
    for (const fs::path& folder : folders_) where += (where.empty() ? "" : " and ") + folder.string();
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
    Say(fmt::format("experiment trackers are offline; it stops {}after {}",
                    steps_ == "auto"  ? "after three steps without a new peak, or "
                    : steps_ == "all" ? ""
                                      : fmt::format("after {} steps, or ", steps_),
                    launch::DurationText(limits_.time_out)));
  }

  int Execute(const std::vector<std::string>& program, const launch::TraceOutput& output,
              launch::Shield* shield, launch::Environment* environment) const {
    launch::HostMemoryWatch host_memory(limits_.host_memory);
    launch::Ending ending;
    {
      launch::AdoptOrphans();
      const launch::SignalQueue signals;
      const launch::Child child = launch::Launch({.command = program,
                                                  .scratch = shield->layer.get(),
                                                  .guarded = shield->guard != nullptr,
                                                  .signal_on_wrapper_death = SIGKILL},
                                                 *environment, signals);
      if (child.process < 0) {
        Say(child.error);
        output.RemoveEmptyFolder();
        return child.exit_code;
      }
      ending = launch::Supervise(child, signals,
                                 {.time_out = limits_.time_out,
                                  .guard = shield->guard.get(),
                                  .host_memory = &host_memory,
                                  .whole_tree = true,
                                  .still_wanted = [&] { return output.Find().empty(); }});
      if (child.guard >= 0) close(child.guard);
    }
    const DryRunVerdict verdict =
        Judge({.gpu_name = std::string(gpu_->device_name),
               .total_basis = total_basis_,
               .context_basis = std::string(catalogue::BasisText(catalogue::ContextOf(*gpu_).basis)),
               .processes = launch::ReadSimulatorReports(shield->Private()),
               .exit_code = launch::ExitCode(ending.wait_status),
               .stop = ending.stop,
               .budget_bytes = limits_.budget,
               .trace = ReadTraces(output)});
    for (const std::string& line : verdict.lines) Say(line);
    SayScratch(shield);
    // That a run which was stopped left no trace is no wonder.
    if (!ending.stop || !output.Find().empty()) {
      SayTraces(output, program, *environment, /*unwritten=*/verdict.used_device);
    }
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
                               .peak_reserved = device.peak_reserved().bytes()};
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
  std::string steps_ = "auto";
  std::string time_out_{kDefaultTimeOut};
  bool in_place_ = false;
  std::vector<std::string> protect_;
  bool keep_ = false;
  bool no_scratch_ = false;
  bool offline_ = false;
  std::string total_;
  std::string host_memory_;
  std::string output_;

  const catalogue::Gpu* gpu_ = nullptr;
  Limits limits_;
  uint64_t total_bytes_ = 0;
  std::string total_basis_;
  std::vector<fs::path> folders_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeDryRunCommand() { return std::make_unique<DryRunCommand>(); }

}  // namespace vramtrace::cli
