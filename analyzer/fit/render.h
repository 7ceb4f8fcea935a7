#pragma once
// A search's result as text and JSON.

#include <nlohmann/json.hpp>
#include <string>

#include "analyzer/fit/report.h"

namespace vramtrace::fit {

// For people. Ends with a line end.
[[nodiscard]] std::string TextOf(const FitReport& report);

// {"format": "vramtrace-fit", "version": 1, ...}; bytes are integers.
[[nodiscard]] nlohmann::json JsonOf(const FitReport& report);

}  // namespace vramtrace::fit
