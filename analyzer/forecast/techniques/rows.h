#pragma once
// What the rows of technique.def name: one pair of functions a row, in the file of its group.

#include "analyzer/forecast/technique.h"

namespace vramtrace::forecast {

// checkpointing.cpp
[[nodiscard]] bool IsCheckpointed(const Stream& stream);
[[nodiscard]] Edited ApplyCheckpointing(const Stream& stream, const TechniqueOptions& options);

}  // namespace vramtrace::forecast
