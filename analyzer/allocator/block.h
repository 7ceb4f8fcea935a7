#pragma once

#include <cstdint>
#include <deque>
#include <memory_resource>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/allocator/units.h"

namespace vramtrace::allocator {

struct Pool;

// Address space of one expandable segment.
struct ExpandableRange {
  Address address = 0;
  Bytes size = 0;
  Bytes page = 0;
};

// A part of a segment. The parts of one segment are linked in the order of their addresses.
struct Block {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;
  StreamId stream = StreamId::kDefault;
  Pool* pool = nullptr;
  Block* prev = nullptr;
  Block* next = nullptr;
  ExpandableRange* range = nullptr;  // of an expandable segment
  std::uint64_t order = 0;           // decides between blocks of one size; TieOrder says what it counts
  std::int64_t searches_before = 0;  // of its pool when it was last put there: its age for garbage collection
  std::uint32_t pending_events = 0;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  bool in_use = false;          // this record is a block, not a spare one
  bool allocated = false;       // handed out
  bool mapped = true;           // backed by memory; only ever false in expandable segments
  bool used_elsewhere = false;  // has streams in CachingAllocator::uses_

  [[nodiscard]] bool split() const { return prev != nullptr || next != nullptr; }
  // Neither handed out nor waiting for a stream: it may be merged and built upon.
  [[nodiscard]] bool idle() const { return !allocated && pending_events == 0 && !used_elsewhere; }
};

// Storage of blocks; addresses of blocks are stable, records of merged ones are used again.
class BlockArena {
 public:
  [[nodiscard]] Block* New();
  void Delete(Block* block);
  // nullptr for an id that is not of a block handed out now.
  [[nodiscard]] Block* Find(BlockId id);
  [[nodiscard]] static BlockId IdOf(const Block& block) {
    return BlockId{(std::uint64_t{block.generation} << 32) | block.index};
  }
  [[nodiscard]] const std::deque<Block>& records() const { return records_; }

 private:
  std::deque<Block> records_;
  std::vector<Block*> spare_;
};

// Best fit is the first block of the stream, in this order, that is large enough: the smallest one, and of
// equal ones that with the lowest address.
struct BySize {
  using Key = std::tuple<StreamId, Bytes, std::uint64_t, Address>;
  using is_transparent = void;
  static Key Of(const Block* block) { return {block->stream, block->size, block->order, block->address}; }
  bool operator()(const Block* a, const Block* b) const { return Of(a) < Of(b); }
  bool operator()(const Block* a, const Key& b) const { return Of(a) < b; }
};

struct ByAddress {
  using Key = std::pair<StreamId, Address>;
  using is_transparent = void;
  static Key Of(const Block* block) { return {block->stream, block->address}; }
  bool operator()(const Block* a, const Block* b) const { return Of(a) < Of(b); }
  bool operator()(const Block* a, const Key& b) const { return Of(a) < b; }
};

using FreeBlocks = std::pmr::set<Block*, BySize>;
using UnmappedBlocks = std::pmr::set<Block*, ByAddress>;

// The small or the large half of the default pool or of a private one.
struct Pool {
  Pool(PoolId pool_owner, bool is_small, std::pmr::memory_resource* memory)
      : owner(pool_owner), small(is_small), free(memory), unmapped(memory) {}

  PoolId owner;
  bool small;
  std::int64_t searches = 0;  // counted only while garbage collection is on
  FreeBlocks free;
  UnmappedBlocks unmapped;

  void Insert(Block* block) {
    block->searches_before = searches;
    free.insert(block);
  }
};

}  // namespace vramtrace::allocator
