#pragma once

#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// Leaves out steps that repeat the three before them, event for event: a replay of more of the same reaches
// no new peak, and a long run costs no more than a short one. A step that frees what is older than the step
// before it is kept. Counts them in `repeated_steps`.
void DropRepeatedSteps(Stream* stream);

}  // namespace vramtrace::forecast
