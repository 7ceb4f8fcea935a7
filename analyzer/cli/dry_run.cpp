#include "analyzer/cli/dry_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/host_memory.h"
#include "analyzer/cli/launch/installation.h"
#include "analyzer/cli/launch/trackers.h"
#include "analyzer/cli/subcommand.h"

namespace vramtrace::cli {
namespace {

using launch::Environment;

DryRunProblem BadInput(const trace::Error& error) {
  return {fmt::format("{}: {}", error.file, error.message), kBadInput};
}

void SetVariables(const DryRunRequest& request, const launch::TraceOutput& output,
                  const launch::Shield& shield, const std::filesystem::path& simulator, Environment* to) {
  to->Set("VRAMTRACE_OUTPUT", shield.layer ? output.Pattern(shield.layer->OutputInside()) : output.Pattern());
  to->Set("VRAMTRACE_DRY_RUN", "1");
  // Where it is not set, the program runs to its own end.
  to->Remove("VRAMTRACE_DRY_RUN_STEPS");
  if (request.steps != "all") to->Set("VRAMTRACE_DRY_RUN_STEPS", request.steps);
  to->Set("VRAMTRACE_SIM_GPU", request.gpu->id);
  to->Set("VRAMTRACE_SIM_COUNT", std::to_string(request.count));
  if (request.total) to->Set("VRAMTRACE_SIM_TOTAL", std::to_string(*request.total));
  to->Set("VRAMTRACE_SIM_REPORT", launch::SimulatorReportPattern(shield.Private()));
  to->Set("TRITON_LIBCUDA_PATH", simulator.string());
  to->Remove("CUDA_VISIBLE_DEVICES");
  launch::SetTrackersOffline(shield.Private(), to);
  if (request.offline) launch::SetHubOffline(to);
  for (const auto& [name, value] : request.environment) to->Set(name, value);
}

// Open for writing, or -1.
int OpenOutput(const std::filesystem::path& file) {
  return open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

}  // namespace

std::variant<PreparedDryRun, DryRunProblem> PrepareDryRun(const DryRunRequest& request,
                                                          const launch::TraceOutput& output) {
  std::string problem;
  PreparedDryRun prepared{
      .shield = launch::RaiseShield({.folders = request.folders,
                                     .output = output.Folder(),
                                     .in_place = request.in_place,
                                     .allow_layer = request.allow_layer},
                                    &problem),
      .environment = Environment(environ),
  };
  if (!problem.empty()) return DryRunProblem{problem, kUsage};
  const auto libraries = launch::FindLibraryFolder(launch::ThisExecutable());
  if (!libraries.ok()) return BadInput(libraries.error());
  const auto simulator = launch::FindSimulator(libraries.value());
  if (!simulator.ok()) return BadInput(simulator.error());
  std::vector<std::string> preloads = {launch::RecorderIn(libraries.value()).string()};
  preloads.insert(preloads.end(), simulator.value().libraries.begin(), simulator.value().libraries.end());
  if (const auto bad = prepared.environment.Preload(preloads)) {
    return DryRunProblem{
        fmt::format("{}: the loader cannot preload a path with spaces or colons; install vramtrace elsewhere",
                    *bad),
        kBadInput};
  }
  prepared.dropped_visible_devices = prepared.environment.Get("CUDA_VISIBLE_DEVICES").has_value();
  SetVariables(request, output, prepared.shield, simulator.value().folder, &prepared.environment);
  return prepared;
}

std::variant<launch::Ending, DryRunProblem> ExecuteDryRun(const DryRunRequest& request,
                                                          const launch::TraceOutput& output,
                                                          PreparedDryRun* prepared) {
  const launch::Shield& shield = prepared->shield;
  launch::HostMemoryWatch host_memory(request.host_memory);
  const int program_output = request.program_output.empty() ? -1 : OpenOutput(request.program_output);
  if (program_output < 0 && !request.program_output.empty()) {
    return DryRunProblem{fmt::format("{}: {}", request.program_output.string(), std::strerror(errno)),
                         kBadInput};
  }
  launch::AdoptOrphans();
  const launch::SignalQueue signals;
  const launch::Child child = launch::Launch({.command = request.program,
                                              .scratch = shield.layer.get(),
                                              .guarded = shield.guard != nullptr,
                                              .signal_on_wrapper_death = SIGKILL,
                                              .output = program_output},
                                             prepared->environment, signals);
  if (program_output >= 0) close(program_output);
  if (child.process < 0) return DryRunProblem{child.error, child.exit_code};
  launch::Ending ending = launch::Supervise(child, signals,
                                            {.time_out = request.time_out,
                                             .guard = shield.guard.get(),
                                             .host_memory = &host_memory,
                                             .whole_tree = true,
                                             .still_wanted = [&] { return output.Find().empty(); }});
  if (child.guard >= 0) close(child.guard);
  return ending;
}

}  // namespace vramtrace::cli
