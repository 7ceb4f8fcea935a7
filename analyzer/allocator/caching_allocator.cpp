#include "analyzer/allocator/caching_allocator.h"

#include <utility>

#include "analyzer/allocator/size_classes.h"

namespace vramtrace::allocator {

CachingAllocator::CachingAllocator(const Settings& settings, const VersionRules& rules, DeviceMemory& memory,
                                   StreamEvents& events)
    : rules_(rules), memory_(memory), events_(events), settings_(settings) {
  pools_.push_back(std::make_unique<PoolPair>(PoolId::kDefault, PoolOptions{}, &nodes_));
  if (settings.fraction_given) SetMemoryFraction(settings.memory_fraction);
}

AllocationResult CachingAllocator::Allocate(Bytes requested, StreamId stream, PoolId pool) {
  if (requested == 0) return Allocation{};
  if (requested >= kTooLarge) {
    OutOfMemory failure;
    failure.reason = OutOfMemory::Reason::kTooLarge;
    failure.requested = failure.rounded = failure.tried = requested;
    failure.total = memory_.Info().total;
    failure.free = memory_.Info().free;
    return failure;
  }
  PoolPair* pair = FindPool(pool);
  if (pair == nullptr) return UnknownPool{pool};
  if (!Suspended()) ProcessEvents();
  Request request = MakeRequest(requested, stream, *pair);
  bool rejected = false;
  Block* block = FindFree(request);
  if (block == nullptr) block = TakeMore(request, rejected);
  if (block == nullptr) return Fail(request, rejected);
  return HandOut(request, block);
}

CachingAllocator::Request CachingAllocator::MakeRequest(Bytes requested, StreamId stream, PoolPair& pair) {
  const Bytes rounded =
      RoundSize(requested, settings_.power_of_two_divisions, rules_.one_division_is_unrounded);
  const bool expandable = settings_.expandable_segments && !pair.options.custom_allocator;
  return {
      .requested = requested,
      .rounded = rounded,
      .segment = SegmentBytes(rounded, settings_.large_segment),
      .stream = stream,
      .pool = rounded <= kLargestSmall ? &pair.small : &pair.large,
      .expandable = expandable,
      .may_grow = expandable && (pair.small.owner == PoolId::kDefault || rules_.expandable_in_private_pools)};
}

// One candidate only: after the ordering step a block that fails a test of max_split_size ends the search.
Block* CachingAllocator::FindFree(const Request& request) {
  Pool& pool = *request.pool;
  if (collecting()) ++pool.searches;
  const auto end = pool.free.end();
  auto candidate = pool.free.lower_bound(BySize::Key{request.stream, request.rounded, 0, 0});
  const auto usable = [&](auto position) { return position != end && (*position)->stream == request.stream; };
  if (!usable(candidate)) return nullptr;
  if ((*candidate)->range != nullptr && request.expandable) {
    // The free tail of a segment counts with the room into which it can grow, so that holes are filled first.
    const auto room = [](const Block* block) {
      return block->size + (block->next != nullptr && !block->next->mapped ? block->next->size : 0);
    };
    for (auto next = std::next(candidate);
         (*candidate)->range != nullptr && usable(next) && room(*next) < room(*candidate); ++next) {
      candidate = next;
    }
  } else if ((*candidate)->range != nullptr) {
    do ++candidate;
    while (usable(candidate) && (*candidate)->range != nullptr);
    if (!usable(candidate)) return nullptr;
  }
  Block* block = *candidate;
  const bool oversize = block->size >= settings_.max_split;
  if (request.rounded < settings_.max_split && oversize) return nullptr;
  if (request.rounded >= settings_.max_split &&
      block->size >= request.rounded + settings_.max_non_split_rounding) {
    return nullptr;
  }
  pool.free.erase(candidate);
  return block;
}

// The chain of attempts when no cached block fits. The cache is not searched again after it was released:
// blocks that became free by waiting for events help only if their whole segment went back to the driver.
Block* CachingAllocator::TakeMore(Request& request, bool& rejected) {
  if (collecting()) CollectGarbage();
  Block* block = NewSegment(request, /*retry=*/false, rejected);
  if (block == nullptr && !rejected) block = FindOverflow(request);
  if (block == nullptr && !rejected && ReleaseAvailable(request)) {
    block = NewSegment(request, /*retry=*/false, rejected);
  }
  if (block == nullptr && !rejected && !Suspended()) {
    ReleaseCached(PoolId::kDefault);
    block = NewSegment(request, /*retry=*/true, rejected);
  }
  return block;
}

Block* CachingAllocator::FindOverflow(Request& request) {
  if (!rules_.pools_as_overflow || request.pool->owner != PoolId::kDefault) return nullptr;
  for (const auto& [hash, id] : overflow_) {
    PoolPair* pair = FindPool(id);
    Request other = request;
    other.pool = request.pool->small ? &pair->small : &pair->large;
    other.expandable = false;
    if (Block* block = FindFree(other); block != nullptr) {
      request = other;
      return block;
    }
  }
  return nullptr;
}

Block* CachingAllocator::NewSegment(const Request& request, bool retry, bool& rejected) {
  if (retry) ++statistics_.num_alloc_retries;
  if (limit_ && held_ + request.segment > *limit_) return nullptr;
  // Comes after the limit, so it matters only where the limit was raised above the option's fraction, or is
  // none.
  if (settings_.reject_above_fraction) {
    const auto most =
        static_cast<Bytes>(settings_.memory_fraction * static_cast<double>(memory_.Info().total));
    rejected = held_ + request.segment > most;
    if (rejected) return nullptr;
  }
  if (request.may_grow) return Grow(request);
  const std::optional<Address> address = memory_.Allocate(request.segment);
  if (!address) return nullptr;
  Block* block = blocks_.New();
  block->address = *address;
  block->size = request.segment;
  block->stream = request.stream;
  block->pool = request.pool;
  block->order = NextOrder();
  Held(*request.pool, static_cast<std::int64_t>(block->size));
  Count(*request.pool, [](PoolStatistics& pool) { pool.segment.Increase(1); });
  if (block->size >= settings_.max_split) statistics_.oversize_segments.Increase(1);
  ++statistics_.num_device_alloc;
  return block;
}

std::uint64_t CachingAllocator::NextOrder() {
  return rules_.ties == TieOrder::kLowestAddress ? 0 : ++last_order_;
}

// The order of what is carved from a block.
std::uint64_t CachingAllocator::CarvedOrder(const Block& from) {
  return rules_.ties == TieOrder::kOldestBlock ? ++last_order_ : from.order;
}

bool CachingAllocator::ShouldSplit(const Request& request, const Block& block) const {
  const PoolPair& pair = *pools_[static_cast<std::size_t>(block.pool->owner)];
  if (rules_.no_split_pools && pair.options.no_split) return false;
  const Bytes rest = block.size - request.rounded;
  if (block.pool->small || request.expandable) return rest >= kMinBlock;
  return request.rounded < settings_.max_split && rest > kLargestSmall;
}

Allocation CachingAllocator::HandOut(const Request& request, Block* block) {
  Pool& pool = *request.pool;
  const bool was_split = block->split();
  if (ShouldSplit(request, *block)) {
    Block* rest = blocks_.New();
    rest->address = block->address + request.rounded;
    rest->size = block->size - request.rounded;
    rest->stream = block->stream;
    rest->pool = block->pool;
    rest->range = block->range;
    rest->order = std::exchange(block->order, CarvedOrder(*block));
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->size = request.rounded;
    pool.Insert(rest);
    if (block->range == nullptr) {
      Count(pool, [&](PoolStatistics& counters) {
        if (was_split) {
          counters.inactive_split_bytes.Decrease(block->size);
        } else {
          counters.inactive_split_bytes.Increase(rest->size);
          counters.inactive_split.Increase(1);
        }
      });
    }
  } else if (was_split && block->range == nullptr) {
    Count(pool, [&](PoolStatistics& counters) {
      counters.inactive_split_bytes.Decrease(block->size);
      counters.inactive_split.Decrease(1);
    });
  }
  block->allocated = true;
  block->requested = request.requested;
  Count(pool, [&](PoolStatistics& counters) {
    counters.allocation.Increase(1);
    counters.allocated_bytes.Increase(block->size);
    counters.active.Increase(1);
    counters.active_bytes.Increase(block->size);
    counters.requested_bytes.Increase(block->requested);
  });
  if (block->size >= settings_.max_split) statistics_.oversize_allocations.Increase(1);
  return {BlockArena::IdOf(*block), block->address, block->size};
}

OutOfMemory CachingAllocator::Fail(const Request& request, bool rejected) {
  const MemoryInfo info = memory_.Info();
  if (rejected) {
    ++statistics_.num_oom_rejections;
  } else {
    ++statistics_.num_ooms;
  }
  OutOfMemory failure{.reason = rejected ? OutOfMemory::Reason::kRejected : OutOfMemory::Reason::kNoMemory,
                      .requested = request.requested,
                      .rounded = request.rounded,
                      .tried = request.segment,
                      .total = info.total,
                      .free = info.free,
                      .allowed = limit_,
                      .allocated = static_cast<Bytes>(statistics_.all.allocated_bytes.current),
                      .reserved = static_cast<Bytes>(statistics_.all.reserved_bytes.current)};
  for (std::size_t i = 1; i < pools_.size(); ++i) {
    if (pools_[i] == nullptr) continue;
    for (const Block* block : pools_[i]->small.free) failure.free_in_private_pools += block->size;
    for (const Block* block : pools_[i]->large.free) failure.free_in_private_pools += block->size;
  }
  return failure;
}

void CachingAllocator::SetMemoryFraction(double fraction) {
  if (fraction >= 1.0 && !rules_.full_fraction_limits) {
    limit_.reset();
    return;
  }
  limit_ = static_cast<Bytes>(fraction * static_cast<double>(memory_.Info().total));
}

void CachingAllocator::ChangeSettings(const Settings& settings) { settings_ = settings; }

CachingAllocator::PoolPair* CachingAllocator::FindPool(PoolId pool) {
  const auto index = static_cast<std::size_t>(pool);
  return index < pools_.size() ? pools_[index].get() : nullptr;
}

// PyTorch goes through a hash table of pools with multiplicative (Fibonacci) hashing. Exact while no two
// pools fall into one of its slots.
std::uint64_t CachingAllocator::OverflowOrder(const PoolPair& pair) {
  constexpr std::uint64_t kGoldenRatio = 11400714819323198485U;  // 2^64 divided by the golden ratio
  const std::uint64_t number = pair.options.number;
  return kGoldenRatio * (number != 0 ? number : static_cast<std::uint64_t>(pair.small.owner));
}

PoolId CachingAllocator::CreatePool(const PoolOptions& options) {
  const auto id = static_cast<PoolId>(pools_.size());
  pools_.push_back(std::make_unique<PoolPair>(id, options, &nodes_));
  if (options.use_on_oom) overflow_.emplace(OverflowOrder(*pools_.back()), id);
  return id;
}

void CachingAllocator::ReleasePool(PoolId pool) {
  PoolPair* pair = FindPool(pool);
  if (pair == nullptr || pool == PoolId::kDefault) return;
  pair->released = true;
  if (pair->options.use_on_oom) overflow_.erase(OverflowOrder(*pair));
}

void CachingAllocator::EndCapture() {
  --captures_;
  if (captures_ == 0 && rules_.deferred_frees_at_capture_end) InsertDeferred();
}

void CachingAllocator::ResetPeaks() {
  const auto reset = [](PoolStatistics& pool) {
    for (Counter* counter :
         {&pool.allocation, &pool.segment, &pool.active, &pool.inactive_split, &pool.allocated_bytes,
          &pool.reserved_bytes, &pool.active_bytes, &pool.inactive_split_bytes, &pool.requested_bytes}) {
      counter->peak = counter->current;
    }
  };
  reset(statistics_.all);
  reset(statistics_.small_pool);
  reset(statistics_.large_pool);
  statistics_.oversize_allocations.peak = statistics_.oversize_allocations.current;
  statistics_.oversize_segments.peak = statistics_.oversize_segments.current;
}

// Driver memory of a pool changed by so many bytes.
void CachingAllocator::Held(Pool& pool, std::int64_t change) {
  held_ += static_cast<Bytes>(change);
  PairOf(pool).held += static_cast<Bytes>(change);
  Count(pool, [&](PoolStatistics& counters) { counters.reserved_bytes.Change(change); });
}

}  // namespace vramtrace::allocator
