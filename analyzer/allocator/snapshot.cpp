#include <algorithm>

#include "analyzer/allocator/caching_allocator.h"

namespace vramtrace::allocator {
namespace {

bool StartsSegment(const Block& block) {
  return block.in_use && block.mapped && (block.prev == nullptr || !block.prev->mapped);
}

BlockState StateOf(const Block& block) {
  if (block.allocated) return BlockState::kAllocated;
  return block.idle() ? BlockState::kFree : BlockState::kPending;
}

}  // namespace

std::vector<SegmentView> CachingAllocator::Snapshot() const {
  std::vector<SegmentView> segments;
  for (const Block& head : blocks_.records()) {
    if (!StartsSegment(head)) continue;
    SegmentView& segment = segments.emplace_back();
    segment.address = head.address;
    segment.stream = head.stream;
    segment.pool = head.pool->owner;
    segment.small = head.pool->small;
    segment.expandable = head.range != nullptr;
    for (const Block* block = &head; block != nullptr && block->mapped; block = block->next) {
      segment.size += block->size;
      segment.blocks.push_back({block->address, block->size, block->requested, StateOf(*block)});
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
  return segments;
}

}  // namespace vramtrace::allocator
