#pragma once

#include "analyzer/timeline/scan.h"

namespace vramtrace::timeline {

// The batch size by the shapes of what the root module was called with in the newest step: the first
// dimension that most inputs share; 0 where none has one.
[[nodiscard]] uint64_t BatchOf(const Scan& scan);

}  // namespace vramtrace::timeline
