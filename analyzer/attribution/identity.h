#pragma once
// The accounting identity of an instant, and the free space inside the caching allocator.

#include "analyzer/attribution/breakdown.h"

namespace vramtrace::attribution {

[[nodiscard]] Identity MakeIdentity(const model::Tables& tables, const timeline::Snapshot& snapshot,
                                    const std::array<ClassTotal, kMemoryClassCount>& classes,
                                    uint64_t rounding);

[[nodiscard]] FreeSpace MeasureFreeSpace(const timeline::Snapshot& snapshot);

}  // namespace vramtrace::attribution
