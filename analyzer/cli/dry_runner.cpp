#include "analyzer/cli/dry_runner.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <fstream>

#include "analyzer/cli/dry_run.h"
#include "analyzer/cli/dry_run_verdict.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/report/build.h"

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;
using fit::End;
using fit::RunResult;

// What a program says last is what says why it ended: the end of a Python traceback.
constexpr size_t kLastLines = 12;
constexpr size_t kLongestLine = 400;

std::vector<std::string> LastLines(const fs::path& file) {
  std::ifstream input(file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(input, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    // Other people's bytes go to the terminal: no control characters.
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
    if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + " ...";
    lines.push_back(std::move(line));
    if (lines.size() > kLastLines) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

// The fullest trace of a run, and what PyTorch's allocator counted in it.
void ReadTrace(const launch::TraceOutput& output, RunResult* result, bool* refused) {
  for (const launch::Trace& trace : output.Find()) {
    const auto built = report::BuildReport(trace.file.string(), {.allocations = 1});
    if (!built.ok()) continue;
    for (const auto& device : built.value().report.devices()) {
      *refused |= device.out_of_memory_count() > 0;
      if (device.peak_reserved().bytes() < result->peak_reserved) continue;
      result->trace = trace.file.string();
      result->steps = built.value().report.steps().completed();
      result->peak_allocated = device.peak_allocated().bytes();
      result->peak_reserved = device.peak_reserved().bytes();
    }
  }
}

// Returns how many requests the driver refused; the allocator may have coped.
uint64_t ReadDevices(const fs::path& folder, RunResult* result) {
  uint64_t refused = 0;
  for (const launch::SimulatedProcess& process : launch::ReadSimulatorReports(folder)) {
    for (const launch::SimulatedDevice& device : process.devices) {
      refused += device.refused_allocations;
      result->largest_refused = std::max(result->largest_refused, device.largest_refused_bytes);
      if (device.peak_used_bytes < result->peak_used) continue;
      result->peak_used = device.peak_used_bytes;
      result->context = device.context_bytes;
      result->total = device.total_bytes;
    }
  }
  return refused;
}

bool WasInterrupted(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return false;
  const int number = WTERMSIG(wait_status);
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

End EndOf(const launch::Ending& ending, uint64_t refused, bool allocator_refused) {
  if (ending.stop && std::holds_alternative<launch::TimedOut>(*ending.stop)) return End::kTimedOut;
  if (ending.stop && !std::holds_alternative<launch::LeftRunning>(*ending.stop)) return End::kStopped;
  if (WasInterrupted(ending.wait_status)) return End::kInterrupted;
  // A request that PyTorch's allocator could not serve is out of memory even where the program caught it.
  if (allocator_refused) return End::kOutOfMemory;
  if (launch::ExitCode(ending.wait_status) == 0) return End::kCompleted;
  return refused > 0 ? End::kOutOfMemory : End::kFailed;
}

RunResult NotStarted(const DryRunProblem& problem) {
  RunResult result;
  result.end = End::kNotStarted;
  result.why = problem.words;
  result.exit_code = problem.exit_code;
  return result;
}

}  // namespace

RunResult DryRunner::Run(const fit::RunRequest& request) {
  const fs::path folder = folder_ / fmt::format("run-{}", ++runs_);
  launch::TraceOutput output(folder.string() + "/", launch::ProgramName(request.command),
                             std::chrono::system_clock::now());
  if (const std::string problem = output.Prepare(); !problem.empty()) return NotStarted({problem, kBadInput});

  DryRunRequest run;
  options_.Apply(&run);
  run.program = request.command;
  run.gpu = request.gpu;
  if (request.total != 0) run.total = request.total;
  run.environment = request.environment;
  run.program_output = folder / "output.txt";
  auto prepared = PrepareDryRun(run, output);
  if (const auto* problem = std::get_if<DryRunProblem>(&prepared)) return NotStarted(*problem);
  auto& ready = std::get<PreparedDryRun>(prepared);
  const auto executed = ExecuteDryRun(run, output, &ready);
  if (const auto* problem = std::get_if<DryRunProblem>(&executed)) return NotStarted(*problem);
  const auto& ending = std::get<launch::Ending>(executed);

  RunResult result;
  bool allocator_refused = false;
  ReadTrace(output, &result, &allocator_refused);
  const uint64_t refused = ReadDevices(ready.shield.Private(), &result);
  result.end = EndOf(ending, refused, allocator_refused);
  result.exit_code = launch::ExitCode(ending.wait_status);
  result.last_lines = LastLines(run.program_output);
  if (ending.stop) result.why = StopLines(*ending.stop)[0];
  return result;
}

}  // namespace vramtrace::cli
