#pragma once
// The first half of a search: two recordings without a limit, and a forecaster that has learnt from them.

#include <memory>

#include "analyzer/fit/laboratory.h"

namespace vramtrace::fit {

struct Learnt {
  std::unique_ptr<Forecaster> forecaster;  // null: report.problem says why
  Recording smaller;
  Recording larger;
};

[[nodiscard]] Learnt Learn(Laboratory* laboratory, const Target& target,
                           const std::vector<MakeForecaster>& forecasters);

// Runs the smaller value once more. Two runs of one value that take different memory make every proof void;
// it says so in the report. Done once a report.
void CheckThatRunsRepeat(Laboratory* laboratory, const Target& target, const Recording& recording);

}  // namespace vramtrace::fit
