#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/program.h"
#include "analyzer/cli/recorded_run.h"

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
    auto prepared = PrepareRun(program, output_);
    if (const int* problem = std::get_if<int>(&prepared)) return *problem;
    auto& run = std::get<PreparedRun>(prepared);
    if (!max_size_.empty()) run.environment.Set("VRAMTRACE_MAX_SIZE", max_size_);
    const auto executed =
        ExecuteRun(program, &run, [](const launch::Child&) { return launch::SuperviseOptions{}; });
    if (const int* problem = std::get_if<int>(&executed)) return *problem;
    const int status = std::get<launch::Ending>(executed).wait_status;
    const LeftTraces left = CollectTraces(run.output, program, run.environment, run.unwritten);
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
