#pragma once
// The caching allocator's segments at an instant: what lives in each, its holes, and what pins it.

#include <cstdint>
#include <vector>

#include "analyzer/timeline/snapshot.h"

namespace vramtrace::attribution {

// A segment, or neighbouring mapped pages of an expandable one.
struct SegmentRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool small = false;  // serves blocks up to 1 MiB
  uint64_t live_bytes = 0;
  uint64_t holes = 0;
  uint64_t largest_hole = 0;
  uint64_t hole_bytes = 0;
  std::vector<size_t> blocks;  // indexes into Snapshot::blocks, by address
};

// By address. Blocks that wait for an event of another stream look free here.
[[nodiscard]] std::vector<SegmentRange> MapSegments(const timeline::Snapshot& snapshot);

}  // namespace vramtrace::attribution
