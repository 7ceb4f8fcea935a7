#include <algorithm>
#include <utility>

#include "analyzer/allocator/caching_allocator.h"

namespace vramtrace::allocator {

bool CachingAllocator::Free(BlockId id) {
  Block* block = blocks_.Find(id);
  if (block == nullptr) return false;
  block->allocated = false;
  Count(*block->pool, [&](PoolStatistics& counters) {
    counters.allocation.Decrease(1);
    counters.allocated_bytes.Decrease(block->size);
  });
  if (block->size >= settings_.max_split) statistics_.oversize_allocations.Decrease(1);
  if (!block->used_elsewhere) {
    FreeBlock(block);
  } else if (Suspended()) {
    deferred_.push_back(block);
  } else {
    InsertEvents(block);
  }
  return true;
}

bool CachingAllocator::RecordStream(BlockId id, StreamId stream) {
  Block* block = blocks_.Find(id);
  if (block == nullptr) return false;
  if (stream == block->stream) return true;
  const auto add = [stream](std::vector<StreamId>& streams) {
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  };
  add(uses_[block]);
  block->used_elsewhere = true;
  if (Suspended()) add(uses_in_capture_[block]);
  return true;
}

// While true, events are neither recorded nor asked for, and the whole cache is not released: a capture
// forbids it, and releases up to 2.12 take any use of a private pool for a capture.
bool CachingAllocator::Suspended() const {
  return captures_ > 0 || (pools_in_use_ > 0 && rules_.pool_use_suspends_release);
}

void CachingAllocator::FreeBlock(Block* block) {
  const Bytes size = block->size;
  const Bytes requested = block->requested;
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
  for (Block* neighbour : {block->prev, block->next}) {
    const Bytes merged = Merge(block, neighbour);
    if (merged == 0) continue;
    --blocks;
    bytes -= static_cast<std::int64_t>(merged);
  }
  block->requested = 0;
  block->pool->Insert(block);
  if (block->split()) {
    ++blocks;
    bytes += static_cast<std::int64_t>(block->size);
  }
  Count(*block->pool, [&](PoolStatistics& counters) {
    if (block->range == nullptr) {
      counters.inactive_split.Change(blocks);
      counters.inactive_split_bytes.Change(bytes);
    }
    counters.active.Decrease(1);
    counters.active_bytes.Decrease(size);
    counters.requested_bytes.Decrease(requested);
  });
}

// Makes a neighbour part of `block` if it is as free and as mapped; returns its size, else 0.
Bytes CachingAllocator::Merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->idle() || neighbour->mapped != block->mapped) return 0;
  if (neighbour->mapped) {
    neighbour->pool->free.erase(neighbour);
  } else {
    neighbour->pool->unmapped.erase(neighbour);
  }
  const bool before = neighbour->next == block;
  if (before) block->address = neighbour->address;
  Block*& end = before ? block->prev : block->next;
  end = before ? neighbour->prev : neighbour->next;
  if (end != nullptr) (before ? end->next : end->prev) = block;
  const Bytes size = neighbour->size;
  block->size += size;
  blocks_.Delete(neighbour);
  return size;
}

void CachingAllocator::InsertEvents(Block* block) {
  const auto uses = uses_.find(block);
  if (uses == uses_.end()) return;
  for (const StreamId stream : uses->second) {
    pending_[stream].push_back({events_.Record(stream), block});
    ++block->pending_events;
  }
  uses_.erase(uses);
  uses_in_capture_.erase(block);
  block->used_elsewhere = false;
}

// Blocks that were freed during a capture. Streams recorded during it are done when it is over.
void CachingAllocator::InsertDeferred() {
  for (Block* block : std::exchange(deferred_, {})) {
    if (const auto captured = uses_in_capture_.find(block); captured != uses_in_capture_.end()) {
      std::vector<StreamId>& streams = uses_[block];
      std::erase_if(streams, [&](StreamId stream) {
        return std::find(captured->second.begin(), captured->second.end(), stream) != captured->second.end();
      });
    }
    InsertEvents(block);
    if (block->pending_events == 0) FreeBlock(block);
  }
}

void CachingAllocator::Complete(Block* block) {
  if (--block->pending_events == 0) FreeBlock(block);
}

void CachingAllocator::ProcessEvents() {
  if (!deferred_.empty()) InsertDeferred();
  for (auto queue = pending_.begin(); queue != pending_.end();) {
    std::deque<PendingFree>& waiting = queue->second;
    while (!waiting.empty() && events_.Ready(waiting.front().event)) {
      Block* block = waiting.front().block;
      waiting.pop_front();
      Complete(block);
    }
    queue = waiting.empty() ? pending_.erase(queue) : std::next(queue);
  }
}

void CachingAllocator::SynchronizeEvents(const PoolPair* only) {
  ++statistics_.num_sync_all_streams;
  if (!deferred_.empty()) InsertDeferred();
  for (auto queue = pending_.begin(); queue != pending_.end();) {
    std::deque<PendingFree> kept;
    for (const PendingFree& waiting : queue->second) {
      if (only != nullptr && &PairOf(*waiting.block->pool) != only) {
        kept.push_back(waiting);
        continue;
      }
      events_.Synchronize(waiting.event);
      Complete(waiting.block);
    }
    queue->second = std::move(kept);
    queue = queue->second.empty() ? pending_.erase(queue) : std::next(queue);
  }
}

}  // namespace vramtrace::allocator
