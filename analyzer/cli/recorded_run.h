#pragma once
// The user's program under the recorder on whatever GPU there is, as `record` and `watch` start it.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/environment.h"
#include "analyzer/cli/launch/supervise.h"
#include "analyzer/cli/launch/traces.h"

namespace vramtrace::cli {

struct PreparedRun {
  launch::TraceOutput output;
  launch::Environment environment;
  bool unwritten = false;  // the trace cannot be written, which has been said
};

// Finds the recorder and makes the environment. `output`: as for --output. An int: what stands in the way has
// been said, and the command ends with this exit code.
[[nodiscard]] std::variant<PreparedRun, int> PrepareRun(const std::vector<std::string>& program,
                                                        const std::string& output);

// Runs it to its end and returns its wait status. `supervision` is asked once the program runs.
[[nodiscard]] std::variant<launch::Ending, int> ExecuteRun(
    const std::vector<std::string>& program, PreparedRun* prepared,
    const std::function<launch::SuperviseOptions(const launch::Child&)>& supervision);

}  // namespace vramtrace::cli
