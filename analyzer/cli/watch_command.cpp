#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "analyzer/cli/launch/enter_simulator.h"
#include "analyzer/cli/launch/process_tree.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/program.h"
#include "analyzer/cli/recorded_run.h"
#include "analyzer/watch/session.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

volatile sig_atomic_t interrupted = 0;

// The trace that process `pid` writes: the one that it has mapped.
std::string MappedTrace(pid_t pid) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(".vtrace")) return line.substr(line.find('/'));
  }
  return "";
}

class WatchCommand final : public ProgramCommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "watch"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Watch a program train: memory, utilisation, waiting, cost; at the end why it was slow";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace watch --price 1.98 --currency CNY -- python train.py";
  }

  void AddOptions(CLI::App& app) override {
    ProgramCommand::AddOptions(app);
    app.add_option("--pid", pid_, "Watch a process that runs already, until it ends or Ctrl-C")
        ->check(CLI::PositiveNumber);
    app.add_option("--interval", interval_, "Seconds between two lines")->check(CLI::Range(0.1, 3600.0));
    app.add_option("--price", plan_.price, "What the machine costs an hour")->check(CLI::PositiveNumber);
    app.add_option("--currency", plan_.currency, "Of --price")->capture_default_str();
    app.add_option("--epochs", plan_.epochs, "How many epochs the run has: for the time left");
    app.add_option("--steps-per-epoch", plan_.steps_per_epoch, "Default: the DataLoader's own length");
    app.add_option("--total-steps", plan_.steps, "Optimizer steps of the whole run, instead of --epochs");
    app.add_option("--one-card-step", one_card_step_,
                   "Seconds of a step on one card with the same batch a card: tells whether several scale")
        ->check(CLI::PositiveNumber);
    app.add_option(
        "--on-exit", on_exit_,
        "A shell command to run at the end, with VRAMTRACE_EXIT_CODE set: to stop the machine, say");
    app.add_flag("--explain", explain_, "Show every row of the diagnosis, found or not");
    app.add_option("-o,--output", output_, "The trace's file or folder, as for `record`");
    app.add_option("--format", format_, "text, or json: one line on stdout at the end")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_option("--gpu", gpu_,
                   "On a simulated card, by id or name: what would be shown. The program really runs");
    app.add_option("--count", count_, "With --gpu: how many of them")->check(CLI::Range(1, 16));
    app.add_option("--scenario", scenario_, "With --gpu: a file of what the card says of itself");
  }

  [[nodiscard]] int Run() override {
    if (!gpu_.empty() && !launch::OnSimulator()) return Enter();
    if (pid_ != 0) return WatchProcess();
    const std::vector<std::string> program = Program();
    return program.empty() ? static_cast<int>(kUsage) : WatchProgram(program);
  }

 private:
  int Enter() const {
    const catalogue::Gpu* gpu = catalogue::FindGpu(gpu_);
    if (gpu == nullptr) {
      Say(catalogue::UnknownGpuMessage(gpu_));
      return kUsage;
    }
    Say(launch::EnterSimulator({std::string(gpu->id), count_, scenario_}));
    return kBadInput;
  }

  [[nodiscard]] watch::Session MakeSession() const {
    std::string why;
    auto library = nvml::Library::Open(&why);
    if (library == nullptr) Say("no utilisation, clocks or temperatures: " + why);
    watch::Given given;
    if (one_card_step_ > 0) given.one_card_step = one_card_step_;
    return {std::move(library), why, plan_, given};
  }

  int WatchProgram(const std::vector<std::string>& program) {
    auto prepared = PrepareRun(program, output_);
    if (const int* problem = std::get_if<int>(&prepared)) return *problem;
    auto& run = std::get<PreparedRun>(prepared);

    watch::Session session = MakeSession();
    const auto executed = ExecuteRun(program, &run, [&](const launch::Child& child) {
      const auto tick = [&session, &run, process = child.process, this] {
        Tick(&session, process, [&] { return Fullest(run.output.Find()); });
      };
      return launch::SuperviseOptions{.tick = tick};
    });
    if (const int* problem = std::get_if<int>(&executed)) return *problem;
    const int status = std::get<launch::Ending>(executed).wait_status;
    // A run shorter than a tick has a trace all the same.
    session.Follow(Fullest(run.output.Find()));
    const LeftTraces left = CollectTraces(run.output, program, run.environment, run.unwritten);
    if (format_ != "json") SayTraces(left);
    End(&session, launch::ExitCode(status), left);
    return launch::PassOn(status);
  }

  int WatchProcess() {
    if (!fs::exists(fmt::format("/proc/{}", pid_))) {
      Say(fmt::format("--pid {}: no such process", pid_));
      return kUsage;
    }
    watch::Session session = MakeSession();
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    if (MappedTrace(pid_).empty()) {
      session.ExpectNoTrace();
      Say("that process is not recorded: only what NVML and /proc say; record the next one with `vramtrace "
          "watch -- CMD`");
    }
    while (interrupted == 0 && fs::exists(fmt::format("/proc/{}", pid_))) {
      Tick(&session, pid_, [&] { return MappedTrace(pid_); });
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    End(&session, 0, {});
    return kDone;
  }

  // With several ranks: the trace that has grown most.
  static std::string Fullest(const std::vector<launch::Trace>& traces) {
    const launch::Trace* fullest = nullptr;
    for (const launch::Trace& trace : traces) {
      if (fullest == nullptr || trace.bytes > fullest->bytes) fullest = &trace;
    }
    return fullest == nullptr ? "" : fullest->file.string();
  }

  template <typename FindTrace>
  void Tick(watch::Session* session, pid_t process, FindTrace find) {
    const std::vector<pid_t> below = launch::Descendants(process);
    session->Look(process, below);
    if (Clock::now() < next_line_) return;
    next_line_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval_));
    if (!session->Following()) {
      const std::string trace = find();
      if (!trace.empty()) session->Follow(trace);
    }
    Show(session->Sample(process, below));
  }

  // A program owns its terminal: there one line is written and taken back. Watching another process, the
  // terminal is ours.
  void Show(const watch::Moment& moment) {
    if (::isatty(STDERR_FILENO) == 0) return Say(watch::Line(moment, plan_));
    winsize size{};
    const size_t columns =
        ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79;
    if (pid_ == 0) {
      fmt::print(stderr, "\r\x1b[K{}\r", watch::Line(moment, plan_).substr(0, columns));
    } else {
      const std::string block = watch::Block(moment, plan_, columns);
      if (shown_lines_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", shown_lines_);
      fmt::print(stderr, "{}", block);
      shown_lines_ = static_cast<size_t>(std::count(block.begin(), block.end(), '\n'));
    }
    std::fflush(stderr);
  }

  void End(watch::Session* session, int exit_code, const LeftTraces& left) const {
    if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\x1b[K");
    const watch::Ended ended = session->Finish();
    if (!session->trace_problem().empty()) Say(session->trace_problem());
    if (format_ == "json") {
      nlohmann::ordered_json summary = watch::Json(ended, plan_);
      summary["exit_code"] = exit_code;
      PrintSummary(std::move(summary), left);
    } else {
      fmt::print(stderr, "{}", watch::Diagnosis(ended, plan_, explain_));
    }
    if (!on_exit_.empty()) RunOnExit(exit_code);
    Say(watch::BillingLine(plan_));
  }

  void RunOnExit(int exit_code) const {
    ::setenv("VRAMTRACE_EXIT_CODE", std::to_string(exit_code).c_str(), 1);
    const int status =
        std::system(on_exit_.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe): the user's own
    if (status != 0) Say(fmt::format("--on-exit: {} ended with {}", on_exit_, launch::ExitCode(status)));
  }

  pid_t pid_ = 0;
  double interval_ = 1;
  watch::Plan plan_{.currency = "USD"};
  double one_card_step_ = 0;
  std::string on_exit_;
  bool explain_ = false;
  std::string output_;
  std::string format_ = "text";
  std::string gpu_;
  int count_ = 1;
  std::string scenario_;

  Clock::time_point next_line_ = Clock::now();
  size_t shown_lines_ = 0;
};

}  // namespace

std::unique_ptr<Subcommand> MakeWatchCommand() { return std::make_unique<WatchCommand>(); }

}  // namespace vramtrace::cli
