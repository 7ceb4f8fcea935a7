#pragma once
// An estimate on one screen, and as JSON. Every figure with its basis and its band.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzer/estimate/estimate.h"
#include "analyzer/estimate/techniques.h"

namespace vramtrace::estimate {

[[nodiscard]] std::string EstimateText(const Estimate& estimate, const std::vector<Change>& changes);
[[nodiscard]] nlohmann::ordered_json EstimateJson(const Estimate& estimate,
                                                  const std::vector<Change>& changes);

// How a class of bytes is known.
[[nodiscard]] const char* BasisOf(Class kind);

}  // namespace vramtrace::estimate
