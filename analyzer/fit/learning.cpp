#include "analyzer/fit/learning.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/units.h"

namespace vramtrace::fit {
namespace {

using report::Size;

// How many values that fail are enough to call the program broken.
constexpr int kFailuresBeforeGivingUp = 6;

// Values to try for a recording, best first: two that differ by a factor of two, neither of them 1, where
// rounding hides the law; then other multiples, for programs that take only some.
std::vector<uint64_t> Candidates(const SearchOptions& options) {
  const uint64_t start = std::clamp(options.start, options.from, options.to);
  std::vector<uint64_t> candidates;
  const auto add = [&](uint64_t value) {
    const bool allowed = value >= options.from && value <= options.to;
    const bool known = std::find(candidates.begin(), candidates.end(), value) != candidates.end();
    if (allowed && !known) candidates.push_back(value);
  };
  for (const uint64_t factor : {1, 2, 4, 8, 3, 6, 16, 12}) add(start * factor);
  add(start > 1 ? start / 2 : start + 1);
  for (uint64_t value = options.from; value < options.from + 4; ++value) add(value);
  return candidates;
}

Problem NothingRan(const Laboratory& laboratory, const FitReport& report) {
  const Trial& last = report.trials.back();
  std::string values;
  for (const Trial& trial : report.trials) {
    values += (values.empty() ? "" : ", ") + std::to_string(trial.value);
  }
  return {Problem::Kind::kProgramFailed,
          fmt::format("the program ends with status {} for {} {}", last.run.exit_code,
                      laboratory.options().placeholder, values),
          last.run.last_lines, last.run.exit_code};
}

Problem TooLargeForAnything(const Laboratory& laboratory, uint64_t value, const RunResult& run) {
  return {Problem::Kind::kProgramFailed,
          fmt::format("with {} the program asked for {} more than a card of {} has", laboratory.Name(value),
                      Size(run.largest_refused), Size(kUnlimited)),
          run.last_lines, run.exit_code};
}

// Two completed recordings. False: the report has the problem.
bool Record(Laboratory* laboratory, const Target& target, Learnt* learnt) {
  FitReport& report = laboratory->report();
  std::vector<Recording> recordings;
  int failures = 0;
  for (const uint64_t value : Candidates(laboratory->options())) {
    if (recordings.size() == 2 || failures == kFailuresBeforeGivingUp) break;
    // What is known of the values that are accepted rules some out.
    if (laboratory->values().AtOrBelow(value) != value) continue;
    RunResult run = laboratory->Run(value, target, true, "to forecast from");
    if (auto problem = Laboratory::ProblemOf(run, laboratory->Name(value))) {
      report.problem = std::move(problem);
      return false;
    }
    if (run.end == End::kOutOfMemory) {
      report.problem = TooLargeForAnything(*laboratory, value, run);
      return false;
    }
    if (run.end == End::kFailed) {
      ++failures;
      continue;
    }
    if (run.peak_used == 0) {
      report.problem =
          Problem{Problem::Kind::kNoGpu,
                  fmt::format("with {} the program did not use the simulated GPU", laboratory->Name(value)),
                  run.last_lines, run.exit_code};
      return false;
    }
    recordings.push_back({value, std::move(run)});
  }
  if (recordings.empty()) {
    report.problem = NothingRan(*laboratory, report);
    return false;
  }
  if (recordings.size() < 2) {
    report.problem =
        Problem{Problem::Kind::kProgramFailed,
                fmt::format("the program takes only {} {} of those that were tried; a forecast needs two "
                            "values, see --start, --from and --to",
                            laboratory->options().placeholder, recordings[0].value),
                report.trials.back().run.last_lines, report.trials.back().run.exit_code};
    return false;
  }
  if (recordings[0].value > recordings[1].value) std::swap(recordings[0], recordings[1]);
  learnt->smaller = std::move(recordings[0]);
  learnt->larger = std::move(recordings[1]);
  return true;
}

}  // namespace

Learnt Learn(Laboratory* laboratory, const Target& target, const std::vector<MakeForecaster>& forecasters) {
  Learnt learnt;
  if (!Record(laboratory, target, &learnt)) return learnt;
  FitReport& report = laboratory->report();
  std::string why;
  for (const MakeForecaster& make : forecasters) {
    auto forecaster = make();
    const std::string refused = forecaster->Learn(learnt.smaller, learnt.larger);
    if (refused.empty()) {
      if (!why.empty())
        report.notes.push_back(fmt::format("the recordings do not make a full forecast: {}", why));
      learnt.forecaster = std::move(forecaster);
      break;
    }
    if (why.empty()) why = refused;
  }
  if (learnt.forecaster == nullptr) {
    report.problem =
        Problem{Problem::Kind::kProgramFailed, fmt::format("the recordings do not make a forecast: {}", why),
                learnt.larger.run.last_lines, learnt.larger.run.exit_code};
    return learnt;
  }
  if (!learnt.forecaster->FollowsValue()) {
    report.problem = Problem{
        Problem::Kind::kNotFollowed,
        fmt::format("{{{}}} does not change the memory: with {} and {} the program asks for the same ({} of "
                    "device used); is it passed on?",
                    laboratory->options().placeholder, learnt.smaller.value, learnt.larger.value,
                    Size(learnt.larger.run.peak_used)),
        learnt.larger.run.last_lines, learnt.larger.run.exit_code};
    learnt.forecaster = nullptr;
    return learnt;
  }
  report.basis.push_back(learnt.forecaster->Basis());
  return learnt;
}

void CheckThatRunsRepeat(Laboratory* laboratory, const Target& target, const Recording& recording) {
  FitReport& report = laboratory->report();
  const auto repeats = std::count_if(report.trials.begin(), report.trials.end(), [&](const Trial& trial) {
    return trial.unlimited && trial.value == recording.value && trial.gpu == target.gpu->id;
  });
  if (repeats != 1) return;
  const RunResult again = laboratory->Run(recording.value, target, true, "does it repeat?");
  if (again.end != End::kCompleted) {
    if (Laboratory::ProblemOf(again, "").has_value()) return;
    report.deterministic = false;
    report.notes.push_back(fmt::format("not deterministic: {} ran through once and not the second time",
                                       laboratory->Name(recording.value)));
    return;
  }
  const RunResult& first = recording.run;
  if (again.peak_allocated == first.peak_allocated && again.peak_used == first.peak_used) return;
  report.deterministic = false;
  const bool pytorch = first.peak_allocated != 0;
  report.notes.push_back(fmt::format(
      "not deterministic: two runs of {} took {} and {} of {}; fix the seeds and the order and lengths of "
      "the data, or take the answer for a guess",
      laboratory->Name(recording.value), Size(pytorch ? first.peak_allocated : first.peak_used),
      Size(pytorch ? again.peak_allocated : again.peak_used),
      pytorch ? "allocated memory" : "device memory"));
}

}  // namespace vramtrace::fit
