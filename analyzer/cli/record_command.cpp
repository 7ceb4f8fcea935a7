#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/installation.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/supervise.h"
#include "analyzer/cli/program.h"

namespace vramtrace::cli {
namespace {

class RecordCommand final : public ProgramCommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "record"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Run a program and record what fills the GPU's memory";
  }
  [[nodiscard]] std::string_view Example() const override { return "vramtrace record -- python train.py"; }

  void AddOptions(CLI::App& app) override {
    ProgramCommand::AddOptions(app);
    app.add_option(
        "-o,--output", output_,
        "The trace's file, or a folder for one trace a process. %p is the process id, %r the rank. "
        "Default: vramtrace-<program>-<pid>-<start>.vtrace here");
    app.add_option(
           "--max-size", max_size_,
           "The trace never grows larger (2GiB; 0: no limit): of a long run the first, the last and the "
           "peak steps are kept whole, the others as a summary")
        ->type_name("SIZE");
    app.add_flag("-q,--quiet", quiet_, "Do not say where the trace is");
    app.add_option("--format", format_, "text, or json: one line on stdout, after the program's own output")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
  }

  [[nodiscard]] int Run() override {
    const std::vector<std::string> program = Program();
    if (program.empty()) return kUsage;
    const auto libraries = launch::FindLibraryFolder(launch::ThisExecutable());
    if (!libraries.ok()) {
      Say(fmt::format("{}: {}", libraries.error().file, libraries.error().message));
      return kBadInput;
    }
    launch::TraceOutput output(output_, launch::ProgramName(program), std::chrono::system_clock::now());
    const std::string problem = output.Prepare();
    if (!problem.empty()) {
      Say(fmt::format("{}; the program runs without a trace", problem));
    }
    launch::Environment environment(environ);
    if (const auto bad = environment.Preload({launch::RecorderIn(libraries.value()).string()})) {
      Say(fmt::format(
          "{}: the loader cannot preload a path with spaces or colons; install vramtrace elsewhere", *bad));
      return kBadInput;
    }
    environment.Set("VRAMTRACE_OUTPUT", output.Pattern());
    if (!max_size_.empty()) environment.Set("VRAMTRACE_MAX_SIZE", max_size_);

    int status = 0;
    {
      const launch::SignalQueue signals;
      const launch::Child child =
          launch::Launch({.command = program, .signal_on_wrapper_death = SIGTERM}, environment, signals);
      if (child.process < 0) {
        Say(child.error);
        output.RemoveEmptyFolder();
        return child.exit_code;
      }
      status = launch::Supervise(child, signals, {}).wait_status;
    }
    const LeftTraces left = CollectTraces(output, program, environment, !problem.empty());
    if (format_ == "json") {
      PrintSummary({{"exit_code", launch::ExitCode(status)}}, left);
    } else if (!quiet_) {
      SayTraces(left);
    }
    return launch::PassOn(status);
  }

 private:
  std::string output_;
  std::string max_size_;
  std::string format_ = "text";
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> MakeRecordCommand() { return std::make_unique<RecordCommand>(); }

}  // namespace vramtrace::cli
