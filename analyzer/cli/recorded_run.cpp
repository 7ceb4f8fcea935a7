#include "analyzer/cli/recorded_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "analyzer/cli/launch/installation.h"
#include "analyzer/cli/program.h"

namespace vramtrace::cli {

std::variant<PreparedRun, int> PrepareRun(const std::vector<std::string>& program,
                                          const std::string& output) {
  const auto libraries = launch::FindLibraryFolder(launch::ThisExecutable());
  if (!libraries.ok()) {
    Say(fmt::format("{}: {}", libraries.error().file, libraries.error().message));
    return kBadInput;
  }
  PreparedRun run{launch::TraceOutput(output, launch::ProgramName(program), std::chrono::system_clock::now()),
                  launch::Environment(environ)};
  const std::string problem = run.output.Prepare();
  run.unwritten = !problem.empty();
  if (run.unwritten) Say(fmt::format("{}; the program runs without a trace", problem));
  if (const auto bad = run.environment.Preload({launch::RecorderIn(libraries.value()).string()})) {
    Say(fmt::format("{}: the loader cannot preload a path with spaces or colons; install vramtrace elsewhere",
                    *bad));
    return kBadInput;
  }
  run.environment.Set("VRAMTRACE_OUTPUT", run.output.Pattern());
  return run;
}

std::variant<launch::Ending, int> ExecuteRun(
    const std::vector<std::string>& program, PreparedRun* prepared,
    const std::function<launch::SuperviseOptions(const launch::Child&)>& supervision) {
  const launch::SignalQueue signals;
  const launch::Child child = launch::Launch({.command = program, .signal_on_wrapper_death = SIGTERM},
                                             prepared->environment, signals);
  if (child.process < 0) {
    Say(child.error);
    prepared->output.RemoveEmptyFolder();
    return child.exit_code;
  }
  return launch::Supervise(child, signals, supervision(child));
}

}  // namespace vramtrace::cli
