#pragma once
// What is allocated on one device at the current event: blocks of the caching allocator, allocations of the
// driver, and what the device said of itself.

#include <cstdint>
#include <map>
#include <optional>

#include "analyzer/model/phase.h"
#include "analyzer/model/tables.h"
#include "analyzer/timeline/address_map.h"
#include "analyzer/trace/event.h"

namespace vramtrace::timeline {

// A live block of the caching allocator.
struct Block {
  uint64_t address = 0;
  uint64_t bytes = 0;      // as the allocator counts it in `allocated`
  uint64_t requested = 0;  // what the program asked for; 0: not known
  uint64_t sequence = 0;   // of its allocation
  uint64_t time_ns = 0;
  model::StackId stack{};
  model::ThreadId thread{};
  trace::AutogradPosition autograd;
  model::Phase phase = model::Phase::kScript;
  uint64_t step = 0;      // that was under way
  bool is_input = false;  // was passed to the root module

  // The tensor's own bytes; the rest of `bytes` is the allocator's rounding.
  [[nodiscard]] uint64_t TensorBytes() const {
    return requested != 0 && requested < bytes ? requested : bytes;
  }
};

// An allocation of the driver: a segment of the caching allocator, or something else's.
struct Segment {
  uint64_t bytes = 0;
  model::StringId caller{};
  model::StringId function{};
  trace::MemoryKind kind = trace::MemoryKind::kDevice;
  bool caching = false;  // belongs to the caching allocator
};

// A mapped range of physical memory (cuMemMap).
struct Mapping {
  uint64_t bytes = 0;
  uint64_t handle = 0;
  bool caching = false;
};

// Things in a trace that contradict each other. Zero in a whole trace.
struct Contradictions {
  uint64_t free_without_allocation = 0;  // a block freed that was never seen
  uint64_t allocation_over_live = 0;     // a block where one is alive
  uint64_t free_size_differs = 0;
  uint64_t driver_free_unknown = 0;
};

// PyTorch's own counters against ours, compared wherever the trace holds them.
struct CounterCheck {
  uint64_t comparisons = 0;
  uint64_t allocated_differences = 0;
  uint64_t reserved_differences = 0;
  int64_t last_allocated_difference = 0;  // theirs - ours, at the last comparison
  int64_t last_reserved_difference = 0;
  int64_t largest_allocated_difference = 0;  // by absolute value
  int64_t largest_reserved_difference = 0;
  uint64_t first_sequence = 0;  // of the first difference
};

class DeviceMemory {
 public:
  // Bytes ------------------------------------------------------------------------------------------------
  [[nodiscard]] uint64_t allocated() const { return allocated_; }  // blocks of the caching allocator
  [[nodiscard]] uint64_t reserved() const { return reserved_; }    // its segments and mapped memory
  [[nodiscard]] uint64_t driver_bytes() const {
    return driver_bytes_;
  }  // all that we saw taken from the device
  [[nodiscard]] uint64_t managed_bytes() const { return managed_bytes_; }  // no part of any other sum
  // Total minus free as the device said last, carried on with what we saw since; nullopt: it never said.
  [[nodiscard]] std::optional<uint64_t> device_used() const;
  [[nodiscard]] bool used_is_recorded() const { return driver_bytes_ == driver_bytes_at_query_; }
  // What the device held just after the context came that no allocation of ours explains.
  [[nodiscard]] std::optional<uint64_t> context_bytes() const { return context_bytes_; }
  [[nodiscard]] uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] uint64_t free_at_query() const { return free_bytes_; }

  [[nodiscard]] const AddressMap<Block>& blocks() const { return blocks_; }
  [[nodiscard]] const std::map<uint64_t, Segment>& segments() const { return segments_; }
  [[nodiscard]] const std::map<uint64_t, Segment>& physical() const { return physical_; }  // by handle
  [[nodiscard]] const std::map<uint64_t, Mapping>& mappings() const { return mappings_; }
  [[nodiscard]] const Contradictions& contradictions() const { return contradictions_; }
  [[nodiscard]] const CounterCheck& counters() const { return counters_; }

  // Events -----------------------------------------------------------------------------------------------
  // The block is alive afterwards. The pointer is valid until the next event.
  const Block* Allocate(const trace::Event& event, model::Phase phase, uint64_t step);
  // A tensor at `address` was passed to the root module; false when no block begins there.
  bool MarkInput(uint64_t address);
  // The block that went away, nullopt when none was known at the address.
  std::optional<Block> Free(const trace::Event& event);
  // `caching_caller`: the calling library is the caching allocator's.
  void DriverAllocate(const trace::Event& event, bool caching_caller);
  void DriverFree(const trace::Event& event);
  void Map(const trace::Event& event);
  void Unmap(const trace::Event& event);
  void Query(const trace::Event& event);
  void CheckCounters(const trace::Event& event);

 private:
  void AdoptSegmentOf(uint64_t address);
  void ReleasePhysical(uint64_t handle);

  AddressMap<Block> blocks_;
  std::map<uint64_t, Segment> segments_;
  std::map<uint64_t, Segment> physical_;
  std::map<uint64_t, Mapping> mappings_;
  uint64_t foreign_segments_ = 0;  // segments that are not the caching allocator's
  uint64_t allocated_ = 0;
  uint64_t reserved_ = 0;
  uint64_t driver_bytes_ = 0;
  uint64_t managed_bytes_ = 0;

  bool queried_ = false;
  uint64_t used_at_query_ = 0;
  uint64_t free_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t driver_bytes_at_query_ = 0;
  std::optional<uint64_t> context_bytes_;
  Contradictions contradictions_;
  CounterCheck counters_;
};

}  // namespace vramtrace::timeline
