#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "analyzer/allocator/block.h"
#include "analyzer/allocator/device_memory.h"
#include "analyzer/allocator/out_of_memory.h"
#include "analyzer/allocator/settings.h"
#include "analyzer/allocator/statistics.h"
#include "analyzer/allocator/stream_events.h"
#include "analyzer/allocator/units.h"
#include "analyzer/allocator/versions.h"

namespace vramtrace::allocator {

struct PoolOptions {
  bool use_on_oom = false;        // the default pool may take its free blocks before it releases memory
  bool no_split = false;          // its blocks are never split
  bool custom_allocator = false;  // segments come from the program's function: no expandable segments
  std::uint64_t number = 0;       // the second part of MemPool.id; 0: its place among all pools
};

struct Allocation {
  BlockId block = BlockId::kNone;  // kNone and no address for a request of 0 bytes
  Address address = 0;
  Bytes size = 0;  // of the block: what it adds to allocated bytes
};

struct UnknownPool {  // never created, or released and given back
  PoolId pool = PoolId::kDefault;
};

using AllocationResult = std::variant<Allocation, OutOfMemory, UnknownPool>;

enum class BlockState : std::uint8_t {
  kFree,
  kAllocated,
  kPending,  // freed, but another stream may still use it
};

struct BlockView {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;  // 0 where free
  BlockState state = BlockState::kFree;
};

// A segment, or a mapped run of an expandable one, as torch.cuda.memory_snapshot() lists it.
struct SegmentView {
  Address address = 0;
  Bytes size = 0;
  StreamId stream = StreamId::kDefault;
  PoolId pool = PoolId::kDefault;
  bool small = false;
  bool expandable = false;
  std::vector<BlockView> blocks;
};

// PyTorch's CUDA caching allocator for one device: the same requests in the same order give the same blocks,
// segments and out of memory, byte for byte, as in the given release. Memory is bounded by the blocks that
// exist at one time. Rules: shared facts in README.md; tests/accuracy/allocator compares it with the real
// one.
class CachingAllocator {
 public:
  // `memory` and `events` are borrowed and outlive the allocator; so does `rules`.
  CachingAllocator(const Settings& settings, const VersionRules& rules, DeviceMemory& memory,
                   StreamEvents& events);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  [[nodiscard]] AllocationResult Allocate(Bytes requested, StreamId stream = StreamId::kDefault,
                                          PoolId pool = PoolId::kDefault);
  // Both false for an id that is not of a block handed out.
  bool Free(BlockId block);
  bool RecordStream(BlockId block, StreamId stream);

  // torch.cuda.empty_cache(), or MemPool's own release with its pool.
  void EmptyCache(PoolId pool = PoolId::kDefault);

  // torch.cuda.set_per_process_memory_fraction().
  void SetMemoryFraction(double fraction);
  // torch.cuda.memory._set_allocator_settings(): blocks that exist stay as they are, and so does the limit,
  // which per_process_memory_fraction sets at the start only.
  void ChangeSettings(const Settings& settings);

  [[nodiscard]] PoolId CreatePool(const PoolOptions& options);
  // Its last user is gone: its free memory can now be given back.
  void ReleasePool(PoolId pool);
  // Allocations are routed into a private pool between these two (the caller gives the pool to Allocate).
  void BeginPoolUse() { ++pools_in_use_; }
  void EndPoolUse() { --pools_in_use_; }
  // A CUDA graph is captured between these two, in addition to the use of its pool.
  void BeginCapture() { ++captures_; }
  void EndCapture();

  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  void ResetPeaks();
  // Held from the driver, which the memory limit is compared with.
  [[nodiscard]] Bytes held() const { return held_; }
  [[nodiscard]] std::optional<Bytes> limit() const { return limit_; }
  // Every segment by address, as memory_snapshot() sorts them.
  [[nodiscard]] std::vector<SegmentView> Snapshot() const;

 private:
  struct PoolPair {
    PoolPair(PoolId id, const PoolOptions& pool_options, std::pmr::memory_resource* memory)
        : options(pool_options), small(id, true, memory), large(id, false, memory) {}
    PoolOptions options;
    bool released = false;
    Bytes held = 0;
    Pool small;
    Pool large;
  };
  struct Request {
    Bytes requested;
    Bytes rounded;
    Bytes segment;
    StreamId stream;
    Pool* pool;
    bool expandable;  // expandable blocks may be taken, and any block may be split down to 512 bytes
    bool may_grow;    // memory comes by growing an expandable segment
  };
  struct PendingFree {
    EventId event;
    Block* block;
  };

  // caching_allocator.cpp: a request from start to end
  [[nodiscard]] Request MakeRequest(Bytes requested, StreamId stream, PoolPair& pair);
  [[nodiscard]] Block* FindFree(const Request& request);
  [[nodiscard]] Block* TakeMore(Request& request, bool& rejected);
  [[nodiscard]] Block* FindOverflow(Request& request);
  [[nodiscard]] Block* NewSegment(const Request& request, bool retry, bool& rejected);
  [[nodiscard]] std::uint64_t NextOrder();
  [[nodiscard]] std::uint64_t CarvedOrder(const Block& from);
  [[nodiscard]] bool ShouldSplit(const Request& request, const Block& block) const;
  [[nodiscard]] Allocation HandOut(const Request& request, Block* block);
  [[nodiscard]] OutOfMemory Fail(const Request& request, bool rejected);

  // free.cpp: a block's way back
  void FreeBlock(Block* block);
  Bytes Merge(Block* block, Block* neighbour);
  void InsertEvents(Block* block);
  void InsertDeferred();
  void ProcessEvents();
  void SynchronizeEvents(const PoolPair* only);
  void Complete(Block* block);
  [[nodiscard]] bool Suspended() const;

  // expandable.cpp: segments that grow
  [[nodiscard]] Block* Grow(const Request& request);
  [[nodiscard]] Block* FindRoom(const Request& request);
  [[nodiscard]] bool Map(Block* block, Bytes size);
  void Unmap(Block* block);
  void ReleaseRange(Block* block);

  // release.cpp: memory back to the driver
  void CollectGarbage();
  [[nodiscard]] bool ReleaseAvailable(const Request& request);
  void ReleaseCached(PoolId pool);
  void ReleaseBlocks(Pool& pool);
  void ReleaseSegment(Block* block);

  void Held(Pool& pool, std::int64_t change);
  // nullptr where there is no such pool.
  [[nodiscard]] PoolPair* FindPool(PoolId pool);
  [[nodiscard]] static std::uint64_t OverflowOrder(const PoolPair& pair);
  [[nodiscard]] bool collecting() const { return limit_ && settings_.garbage_collection_threshold > 0; }
  [[nodiscard]] PoolPair& PairOf(const Pool& pool) { return *pools_[static_cast<std::size_t>(pool.owner)]; }
  template <typename Change>
  void Count(const Pool& pool, Change change) {
    change(statistics_.all);
    change(pool.small ? statistics_.small_pool : statistics_.large_pool);
  }

  const VersionRules& rules_;
  DeviceMemory& memory_;
  StreamEvents& events_;
  Settings settings_;
  std::optional<Bytes> limit_;
  Bytes held_ = 0;
  std::uint64_t last_order_ = 0;
  Statistics statistics_;

  std::pmr::unsynchronized_pool_resource nodes_;
  BlockArena blocks_;
  std::vector<std::unique_ptr<PoolPair>> pools_;
  std::map<std::uint64_t, PoolId> overflow_;  // use_on_oom pools in the order they are tried
  std::unordered_map<const ExpandableRange*, std::unique_ptr<ExpandableRange>> ranges_;

  std::unordered_map<const Block*, std::vector<StreamId>> uses_;
  std::unordered_map<const Block*, std::vector<StreamId>> uses_in_capture_;
  std::map<StreamId, std::deque<PendingFree>> pending_;
  std::vector<Block*> deferred_;
  int pools_in_use_ = 0;
  int captures_ = 0;
};

}  // namespace vramtrace::allocator
