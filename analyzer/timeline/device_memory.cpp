#include "analyzer/timeline/device_memory.h"

#include <cstdlib>

namespace vramtrace::timeline {
namespace {

using trace::MemoryKind;

// Managed pages live where they were touched last, imported memory is counted by its owner, a graph's node is
// an address.
bool TakesDeviceMemory(MemoryKind kind) {
  return kind != MemoryKind::kManaged && kind != MemoryKind::kImported && kind != MemoryKind::kGraph;
}

bool IsSegmentOfCachingAllocator(MemoryKind kind, bool caching_caller) {
  return caching_caller && kind == MemoryKind::kDevice;
}

// A hostile trace may add up to more than 64 bits; sums stay defined and saturate at both ends.
void Add(uint64_t* sum, uint64_t bytes) {
  if (__builtin_add_overflow(*sum, bytes, sum)) *sum = UINT64_MAX;
}
void Subtract(uint64_t* sum, uint64_t bytes) { *sum = *sum > bytes ? *sum - bytes : 0; }

void Compare(uint64_t theirs, uint64_t ours, uint64_t* differences, int64_t* last, int64_t* largest) {
  *last = static_cast<int64_t>(theirs - ours);
  if (*last == 0) return;
  ++*differences;
  const auto magnitude = [](int64_t value) {
    return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  };
  if (magnitude(*last) > magnitude(*largest)) *largest = *last;
}

}  // namespace

std::optional<uint64_t> DeviceMemory::device_used() const {
  if (!queried_) return std::nullopt;
  uint64_t used = used_at_query_;
  Add(&used, driver_bytes_ > driver_bytes_at_query_ ? driver_bytes_ - driver_bytes_at_query_ : 0);
  Subtract(&used, driver_bytes_at_query_ > driver_bytes_ ? driver_bytes_at_query_ - driver_bytes_ : 0);
  return used;
}

const Block* DeviceMemory::Allocate(const trace::Event& event, model::Phase phase, uint64_t step) {
  if (Block* old = blocks_.Find(event.address); old != nullptr) {
    // Its free was lost. Two live blocks never share an address.
    ++contradictions_.allocation_over_live;
    Subtract(&allocated_, old->bytes);
  }
  if (foreign_segments_ > 0) AdoptSegmentOf(event.address);
  Add(&allocated_, event.bytes);
  return blocks_.Insert(
      event.address, {event.address, event.bytes, event.requested, event.sequence, event.time_ns, event.stack,
                      event.thread, event.autograd, phase, step, false});
}

bool DeviceMemory::MarkInput(uint64_t address) {
  Block* block = blocks_.Find(address);
  if (block == nullptr) return false;
  block->is_input = true;
  return true;
}

std::optional<Block> DeviceMemory::Free(const trace::Event& event) {
  Block* found = blocks_.Find(event.address);
  if (found == nullptr) {
    ++contradictions_.free_without_allocation;
    return std::nullopt;
  }
  const Block block = *found;
  if (event.bytes != 0 && event.bytes != block.bytes) ++contradictions_.free_size_differs;
  blocks_.Erase(found);
  Subtract(&allocated_, block.bytes);
  return block;
}

void DeviceMemory::AdoptSegmentOf(uint64_t address) {
  auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return;
  auto& [begin, segment] = *--after;
  if (segment.caching || segment.kind != MemoryKind::kDevice || address - begin >= segment.bytes) return;
  segment.caching = true;
  --foreign_segments_;
  Add(&reserved_, segment.bytes);
}

void DeviceMemory::DriverAllocate(const trace::Event& event, bool caching_caller) {
  if (event.result != 0) return;
  const bool caching = IsSegmentOfCachingAllocator(event.memory_kind, caching_caller);
  const Segment segment{event.bytes, event.caller, event.function, event.memory_kind,
                        caching || (caching_caller && event.memory_kind == MemoryKind::kPhysical)};
  if (TakesDeviceMemory(event.memory_kind)) Add(&driver_bytes_, event.bytes);
  if (event.memory_kind == MemoryKind::kManaged) Add(&managed_bytes_, event.bytes);
  if (event.memory_kind == MemoryKind::kPhysical) {
    physical_[event.address] = segment;
    return;
  }
  if (segments_.contains(event.address)) {  // its free was lost
    ++contradictions_.allocation_over_live;
    trace::Event lost = event;
    DriverFree(lost);
  }
  if (caching) Add(&reserved_, event.bytes);
  if (!segment.caching) ++foreign_segments_;
  segments_[event.address] = segment;
}

void DeviceMemory::DriverFree(const trace::Event& event) {
  if (event.result != 0) return;
  if (event.memory_kind == MemoryKind::kPhysical) return ReleasePhysical(event.address);
  const auto found = segments_.find(event.address);
  if (found == segments_.end()) {
    ++contradictions_.driver_free_unknown;
    return;
  }
  const Segment& segment = found->second;
  if (TakesDeviceMemory(segment.kind)) Subtract(&driver_bytes_, segment.bytes);
  if (segment.kind == MemoryKind::kManaged) Subtract(&managed_bytes_, segment.bytes);
  if (segment.caching) {
    Subtract(&reserved_, segment.bytes);
  } else {
    --foreign_segments_;
  }
  segments_.erase(found);
}

void DeviceMemory::ReleasePhysical(uint64_t handle) {
  const auto found = physical_.find(handle);
  if (found == physical_.end()) {
    const auto imported = segments_.find(handle);  // another process's
    if (imported != segments_.end() && imported->second.kind == MemoryKind::kImported) {
      --foreign_segments_;
      segments_.erase(imported);
      return;
    }
    ++contradictions_.driver_free_unknown;
    return;
  }
  Subtract(&driver_bytes_, found->second.bytes);
  physical_.erase(found);
}

void DeviceMemory::Map(const trace::Event& event) {
  const auto physical = physical_.find(event.handle);
  const bool caching = physical != physical_.end() && physical->second.caching;
  if (caching) Add(&reserved_, event.bytes);
  mappings_[event.address] = {event.bytes, event.handle, caching};
}

void DeviceMemory::Unmap(const trace::Event& event) {
  // One call may unmap several neighbouring pages.
  uint64_t end = event.address;
  Add(&end, event.bytes);
  auto mapping = mappings_.lower_bound(event.address);
  if (mapping == mappings_.end() || mapping->first >= end) ++contradictions_.driver_free_unknown;
  while (mapping != mappings_.end() && mapping->first < end) {
    if (mapping->second.caching) Subtract(&reserved_, mapping->second.bytes);
    mapping = mappings_.erase(mapping);
  }
}

void DeviceMemory::Query(const trace::Event& event) {
  if (event.free_bytes > event.total_bytes) return;
  queried_ = true;
  used_at_query_ = event.total_bytes - event.free_bytes;
  free_bytes_ = event.free_bytes;
  total_bytes_ = event.total_bytes;
  driver_bytes_at_query_ = driver_bytes_;
  // The first answer, at best the one that the recorder asks for as soon as the context exists.
  if (!context_bytes_) {
    context_bytes_ = used_at_query_ > driver_bytes_ ? used_at_query_ - driver_bytes_ : 0;
  }
}

void DeviceMemory::CheckCounters(const trace::Event& event) {
  if (!event.has_totals) return;
  ++counters_.comparisons;
  const uint64_t before = counters_.allocated_differences + counters_.reserved_differences;
  Compare(event.allocated_total, allocated_, &counters_.allocated_differences,
          &counters_.last_allocated_difference, &counters_.largest_allocated_difference);
  // Zero reserved with bytes allocated cannot be: the field was not written.
  if (event.reserved_total != 0 || event.allocated_total == 0) {
    Compare(event.reserved_total, reserved_, &counters_.reserved_differences,
            &counters_.last_reserved_difference, &counters_.largest_reserved_difference);
  }
  const uint64_t after = counters_.allocated_differences + counters_.reserved_differences;
  if (before == 0 && after > 0) counters_.first_sequence = event.sequence;
}

}  // namespace vramtrace::timeline
