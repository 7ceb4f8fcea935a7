#include <algorithm>

#include "analyzer/allocator/caching_allocator.h"
#include "analyzer/allocator/size_classes.h"

namespace vramtrace::allocator {

// Memory for a request by mapping pages into the stream's expandable segment. Pages that were mapped before a
// later step failed stay mapped, as free memory.
Block* CachingAllocator::Grow(const Request& request) {
  Block* block = FindRoom(request);
  if (block == nullptr) return nullptr;
  if (!block->mapped && !Map(block, std::min(block->size, request.rounded))) return nullptr;
  while (block->size < request.rounded) {
    Block* next = block->next;
    if (!Map(next, std::min(request.rounded - block->size, next->size))) return nullptr;
    block = next;
  }
  request.pool->free.erase(block);
  return block;
}

// The lowest place where free and unmapped parts together are long enough, else a new address range; nullptr
// where the release gives that back because it is too short.
Block* CachingAllocator::FindRoom(const Request& request) {
  Pool& pool = *request.pool;
  for (auto unmapped = pool.unmapped.lower_bound(ByAddress::Key{request.stream, 0});
       unmapped != pool.unmapped.end() && (*unmapped)->stream == request.stream; ++unmapped) {
    Block* first = *unmapped;
    if (first->prev != nullptr && first->prev->idle()) first = first->prev;
    Bytes room = 0;
    for (const Block* part = first; room < request.rounded && part != nullptr && part->idle();
         part = part->next) {
      room += part->size;
    }
    if (room >= request.rounded) return first;
  }
  // An eighth more than the card has, in whole pages; address space is not scarce.
  const Bytes total = memory_.Info().total;
  auto range = std::make_unique<ExpandableRange>();
  range->page = pool.small ? kSmallSegment : settings_.large_segment;
  range->size = RoundUp(total + total / 8, range->page);
  range->address = memory_.ReserveRange(range->size);
  if (rules_.short_range_is_given_back && range->size < request.rounded) {
    memory_.ReleaseRange(range->address, range->size);
    return nullptr;
  }
  Block* block = blocks_.New();
  block->address = range->address;
  block->size = range->size;
  block->stream = request.stream;
  block->pool = &pool;
  block->range = range.get();
  block->mapped = false;
  block->order = NextOrder();
  pool.unmapped.insert(block);
  ranges_.emplace(range.get(), std::move(range));
  return block;
}

// Backs the first `size` bytes of an unmapped block with whole pages and joins it with its free neighbours.
bool CachingAllocator::Map(Block* block, Bytes size) {
  Pool& pool = *block->pool;
  const Bytes page = block->range->page;
  const Bytes mapped = RoundUp(size, page);
  if (!memory_.MapPages(block->address, page, mapped / page)) return false;
  pool.unmapped.erase(block);
  block->mapped = true;
  if (mapped < block->size) {
    Block* rest = blocks_.New();
    rest->address = block->address + mapped;
    rest->size = block->size - mapped;
    rest->stream = block->stream;
    rest->pool = &pool;
    rest->range = block->range;
    rest->mapped = false;
    rest->order = CarvedOrder(*block);
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->size = mapped;
    pool.unmapped.insert(rest);
  }
  Merge(block, block->prev);
  Merge(block, block->next);
  pool.Insert(block);
  Held(pool, static_cast<std::int64_t>(mapped));
  ++statistics_.num_device_alloc;
  return true;
}

// Gives back the pages that lie entirely inside a free block; what is left of it at both ends stays free.
void CachingAllocator::Unmap(Block* block) {
  Pool& pool = *block->pool;
  const ExpandableRange& range = *block->range;
  const Bytes start = RoundUp(block->address - range.address, range.page);
  const Bytes end = RoundDown(block->address + block->size - range.address, range.page);
  if (start >= end) return;
  const Bytes size = end - start;
  memory_.UnmapPages(range.address + start, range.page, size / range.page);
  pool.free.erase(block);

  const auto split_off = [&](Address address, Bytes length, Block* prev, Block* next) {
    Block* part = blocks_.New();
    part->address = address;
    part->size = length;
    part->stream = block->stream;
    part->pool = &pool;
    part->range = block->range;
    part->order = CarvedOrder(*block);
    part->prev = prev;
    part->next = next;
    if (prev != nullptr) prev->next = part;
    if (next != nullptr) next->prev = part;
    pool.Insert(part);
  };
  const Bytes before = range.address + start - block->address;
  const Bytes after = block->size - before - size;
  if (before > 0) split_off(block->address, before, block->prev, block);
  if (after > 0) split_off(range.address + end, after, block, block->next);
  block->address = range.address + start;
  block->size = size;
  block->mapped = false;
  Merge(block, block->prev);
  Merge(block, block->next);
  pool.unmapped.insert(block);
  Held(pool, -static_cast<std::int64_t>(size));
  ++statistics_.num_device_free;
}

void CachingAllocator::ReleaseRange(Block* block) {
  memory_.ReleaseRange(block->range->address, block->range->size);
  block->pool->unmapped.erase(block);
  ranges_.erase(block->range);
  blocks_.Delete(block);
}

}  // namespace vramtrace::allocator
