#pragma once

#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// A run that ended out of memory stopped inside a step: what that step would still have asked for is not in
// the trace, and without it a forecast would call too much a fit. Where the step before it is whole and began
// with the same requests, the rest is taken from there, each size that can depend on the batch times the
// ratio of the two steps' sizes so far. False where that cannot be done: no step is whole, or this one is
// another. The requests' laws must be set.
[[nodiscard]] bool FinishStep(Stream* stream);

}  // namespace vramtrace::forecast
