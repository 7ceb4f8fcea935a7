#include <algorithm>

#include "analyzer/allocator/caching_allocator.h"

namespace vramtrace::allocator {

void CachingAllocator::EmptyCache(PoolId pool) { ReleaseCached(pool); }

// Gives back whole free segments of the default large pool that were not used for longer than average, until
// the threshold is met or none is older. A pass over the pool is not cut short when the threshold is met.
void CachingAllocator::CollectGarbage() {
  const auto threshold =
      static_cast<Bytes>(settings_.garbage_collection_threshold * static_cast<double>(*limit_));
  if (held_ <= threshold) return;
  const Bytes target = held_ - threshold;
  Pool& pool = pools_[0]->large;
  const auto age = [&](const Block* block) { return pool.searches - block->searches_before; };
  const auto collectable = [&](const Block* block) { return !block->split() && block->range == nullptr; };
  std::int64_t total_age = 0;
  std::int64_t count = 0;
  for (const Block* block : pool.free) {
    if (block->split()) continue;
    total_age += age(block);
    ++count;
  }
  Bytes freed = 0;
  for (bool any = true; freed < target && any && count > 0;) {
    any = false;
    const double threshold_age = static_cast<double>(total_age) / static_cast<double>(count);
    for (auto position = pool.free.begin(); position != pool.free.end();) {
      Block* block = *position++;
      if (!collectable(block) || static_cast<double>(age(block)) < threshold_age) continue;
      any = true;
      freed += block->size;
      total_age -= age(block);
      --count;
      ReleaseSegment(block);
    }
  }
}

// With max_split_size: gives back the smallest unsplittable segment that alone makes room, else the largest
// ones until they do.
bool CachingAllocator::ReleaseAvailable(const Request& request) {
  if (settings_.max_split == kUnlimited) return false;
  FreeBlocks& free = request.pool->free;
  const Bytes needed = std::max(request.rounded, settings_.max_split);
  auto position = free.lower_bound(BySize::Key{request.stream, needed, 0, 0});
  // Blocks of this size are never split, unless max_split_size was lowered meanwhile: PyTorch then gives back
  // part of a segment, which ends in an error.
  const auto whole = [](const Block* block) { return block->range == nullptr && !block->split(); };
  if (position != free.end() && (*position)->stream == request.stream && whole(*position)) {
    ReleaseSegment(*position);
    return true;
  }
  if (position == free.begin()) return false;
  Bytes released = 0;
  for (--position; released < needed;) {
    Block* block = *position;
    if (block->size < settings_.max_split || block->stream != request.stream) break;
    const bool first = position == free.begin();
    if (!first) --position;
    if (whole(block)) {
      released += block->size;
      ReleaseSegment(block);
    }
    if (first) break;
  }
  return released >= needed;
}

// With the default pool everything that can go; with a private one only that, if its last user is gone.
void CachingAllocator::ReleaseCached(PoolId pool) {
  const bool everything = pool == PoolId::kDefault;
  if (everything && !Suspended()) {
    SynchronizeEvents(nullptr);
    ReleaseBlocks(pools_[0]->large);
    ReleaseBlocks(pools_[0]->small);
  }
  for (std::size_t i = 1; i < pools_.size(); ++i) {
    PoolPair* pair = pools_[i].get();
    if (pair == nullptr || !pair->released) continue;
    if (!everything) {
      if (i != static_cast<std::size_t>(pool)) continue;
      SynchronizeEvents(pair);
    }
    ReleaseBlocks(pair->small);
    ReleaseBlocks(pair->large);
    if (pair->held == 0) pools_[i].reset();
  }
}

void CachingAllocator::ReleaseBlocks(Pool& pool) {
  std::vector<Block*> expandable;
  for (auto position = pool.free.begin(); position != pool.free.end();) {
    Block* block = *position++;
    if (block->range != nullptr) {
      expandable.push_back(block);
    } else if (!block->split()) {
      ReleaseSegment(block);
    }
  }
  for (Block* block : expandable) {
    Unmap(block);
    if (!block->split() && !block->mapped) ReleaseRange(block);
  }
}

void CachingAllocator::ReleaseSegment(Block* block) {
  ++statistics_.num_device_free;
  memory_.Free(block->address, block->size);
  Pool& pool = *block->pool;
  Held(pool, -static_cast<std::int64_t>(block->size));
  Count(pool, [](PoolStatistics& counters) { counters.segment.Decrease(1); });
  if (block->size >= settings_.max_split) statistics_.oversize_segments.Decrease(1);
  pool.free.erase(block);
  blocks_.Delete(block);
}

}  // namespace vramtrace::allocator
