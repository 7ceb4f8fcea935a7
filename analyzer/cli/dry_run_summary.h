#pragma once
// `dry-run --format json`: the verdict and what it rests on, for a script or a CI job. Sizes are bytes. Keys
// are only ever added.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "analyzer/cli/dry_run_verdict.h"

namespace vramtrace::cli {

// `gpu_id` is the catalogue's. What is not known is left out: "budget_bytes" when none was given, "pytorch"
// without a trace of its caching allocator, "stopped" for a run that ended by itself.
[[nodiscard]] nlohmann::ordered_json Summarise(std::string_view gpu_id, const DryRunFacts& facts,
                                               const DryRunVerdict& verdict);

}  // namespace vramtrace::cli
