#include "analyzer/attribution/segment_map.h"

#include <algorithm>

namespace vramtrace::attribution {
namespace {

using timeline::Snapshot;

std::vector<SegmentRange> CachingRanges(const Snapshot& snapshot) {
  // Segments and pages of 2 MiB serve blocks up to 1 MiB (kSmallBuffer of the caching allocator).
  constexpr uint64_t kSmallBuffer = 2 * 1024 * 1024;
  std::vector<SegmentRange> ranges;
  const auto add = [&](uint64_t begin, uint64_t bytes, bool small) {
    SegmentRange& range = ranges.emplace_back();
    range.begin = begin;
    range.end = begin + bytes;
    range.small = small;
  };
  for (const auto& [address, segment] : snapshot.segments) {
    if (segment.caching) add(address, segment.bytes, segment.bytes == kSmallBuffer);
  }
  for (const auto& [address, mapping] : snapshot.mappings) {
    if (!mapping.caching) continue;
    const bool small = mapping.bytes == kSmallBuffer;
    if (!ranges.empty() && ranges.back().end == address && ranges.back().small == small) {
      ranges.back().end = address + mapping.bytes;
    } else {
      add(address, mapping.bytes, small);
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const SegmentRange& a, const SegmentRange& b) { return a.begin < b.begin; });
  return ranges;
}

void AddHole(uint64_t bytes, SegmentRange* range) {
  if (bytes == 0) return;
  range->hole_bytes += bytes;
  ++range->holes;
  range->largest_hole = std::max(range->largest_hole, bytes);
}

}  // namespace

std::vector<SegmentRange> MapSegments(const Snapshot& snapshot) {
  std::vector<SegmentRange> ranges = CachingRanges(snapshot);
  size_t next = 0;
  for (SegmentRange& range : ranges) {
    while (next < snapshot.blocks.size() && snapshot.blocks[next].block.address < range.begin) ++next;
    uint64_t at = range.begin;
    for (; next < snapshot.blocks.size() && snapshot.blocks[next].block.address < range.end; ++next) {
      const timeline::Block& block = snapshot.blocks[next].block;
      if (block.address > at) AddHole(block.address - at, &range);
      at = std::max(at, block.address + block.bytes);
      range.live_bytes += block.bytes;
      range.blocks.push_back(next);
    }
    if (at < range.end) AddHole(range.end - at, &range);
  }
  return ranges;
}

}  // namespace vramtrace::attribution
