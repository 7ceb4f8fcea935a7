#pragma once
// What an allocation is called: "exp_avg of h.0.mlp.c_fc.weight", or its module's path.

#include <string>

#include "analyzer/attribution/breakdown.h"

namespace vramtrace::report {

// Empty when neither a name nor a module is known.
[[nodiscard]] std::string TitleOf(const attribution::Allocation& allocation);

}  // namespace vramtrace::report
