#pragma once
// Finds the largest value that fits each card: forecasts from two runs of small values, then proves the edge
// with two more on the card itself. Where the proof contradicts the forecast it goes on from there by steps
// that double, then by halves.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/fit/forecaster.h"
#include "analyzer/fit/report.h"
#include "analyzer/fit/runner.h"

namespace vramtrace::fit {

struct SearchOptions {
  std::vector<std::string> command;  // with the placeholder
  std::string placeholder = "batch";
  uint64_t from = 1;
  uint64_t to = uint64_t{1} << 20;
  uint64_t start = 4;  // the smaller of the two values to forecast from
  std::vector<Target> targets;
  // What a search may try on one card. A forecast that holds needs two.
  int most_runs = 24;
  std::vector<std::pair<std::string, std::string>> environment;
};

using MakeForecaster = std::function<std::unique_ptr<Forecaster>()>;
// Lines for people, as the search goes on.
using Progress = std::function<void(const std::string&)>;

// `forecasters`: tried in their order until one can learn. Cards of one compute capability share recordings,
// because they run the same kernels.
[[nodiscard]] FitReport Search(const SearchOptions& options, Runner* runner,
                               const std::vector<MakeForecaster>& forecasters, const Progress& progress);

}  // namespace vramtrace::fit
