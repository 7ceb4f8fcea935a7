#pragma once
// The second half of a search: the largest value that fits one card, proved by runs on it.

#include "analyzer/fit/laboratory.h"
#include "analyzer/fit/learning.h"

namespace vramtrace::fit {

// False when the search must end: the report has the problem.
[[nodiscard]] bool FindEdge(Laboratory* laboratory, const Target& target, const Target& recorded_on,
                            Learnt* learnt, CardAnswer* answer);

}  // namespace vramtrace::fit
