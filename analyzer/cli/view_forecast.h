#pragma once
// The forecasts that the viewer's what-if panel chooses from: tables made beforehand, since the page has no
// server.

#include <vector>

#include "analyzer/report/build.h"

namespace vramtrace::cli {

// First the recorded run as it is, on every card and around the largest batch that fits; then the same with
// each of the cheapest techniques. Empty: the trace holds too little for one (no whole step, no block of
// PyTorch's).
[[nodiscard]] std::vector<report::v1::Forecast> ForecastsFor(const report::BuiltReport& built);

}  // namespace vramtrace::cli
