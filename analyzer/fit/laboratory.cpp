#include "analyzer/fit/laboratory.h"

#include <fmt/format.h>

#include "analyzer/fit/placeholder.h"

namespace vramtrace::fit {

std::string Laboratory::Name(uint64_t value) const {
  return fmt::format("{} {}", options_.placeholder, value);
}

RunResult Laboratory::Run(uint64_t value, const Target& target, bool unlimited, std::string_view why) {
  progress_(fmt::format("dry run {}: {} on {} {}, {}", report_->trials.size() + 1, Name(value),
                        unlimited ? "an unlimited" : "the", target.gpu->device_name, why));
  const RunRequest request{.command = Fill(options_.command, options_.placeholder, value),
                           .gpu = target.gpu,
                           .total = unlimited ? kUnlimited : target.total,
                           .environment = options_.environment};
  RunResult run = runner_->Run(request);
  if (run.end == End::kCompleted) values_.Accept(value);
  if (run.end == End::kFailed) values_.Reject(value);
  report_->trials.push_back({value, std::string(target.gpu->id), unlimited, run});
  report_->step = values_.step();
  return run;
}

std::optional<Problem> Laboratory::ProblemOf(const RunResult& run, const std::string& name) {
  using Kind = Problem::Kind;
  switch (run.end) {
    case End::kTimedOut:
      return Problem{Kind::kTimedOut,
                     fmt::format("with {} the program did not come to an end: {}; it may hang, or need a "
                                 "longer --timeout or fewer --steps",
                                 name, run.why),
                     run.last_lines, run.exit_code};
    case End::kStopped:
      return Problem{Kind::kStopped, fmt::format("with {}: {}", name, run.why), run.last_lines,
                     run.exit_code};
    case End::kInterrupted:
      return Problem{Kind::kInterrupted, "interrupted", {}, run.exit_code};
    case End::kNotStarted:
      return Problem{Kind::kNotStarted, run.why, run.last_lines, run.exit_code};
    case End::kCompleted:
    case End::kOutOfMemory:
    case End::kFailed:
      break;
  }
  return std::nullopt;
}

}  // namespace vramtrace::fit
