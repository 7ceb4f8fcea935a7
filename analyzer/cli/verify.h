#pragma once

#include <string>
#include <vector>

#include "analyzer/forecast/planner.h"

namespace vramtrace::cli {

// Runs the program again on the simulated device as `prediction` has it and prints both on stdout. `program`:
// what the user gave after `--`; the recorded command when it is empty. Returns an ExitCode: kCheckFailed
// where the run cannot be made, fails, or lies outside of the forecast's band.
[[nodiscard]] int VerifyForecast(const forecast::Planner& planner, const forecast::Prediction& prediction,
                                 const forecast::Card& card, const std::vector<std::string>& program);

}  // namespace vramtrace::cli
