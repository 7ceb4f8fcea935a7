#pragma once
// What is recorded of a block of the caching allocator, and the counters that are kept beside it.

#include <cstdint>

namespace vramtrace::hooks {

struct BlockReport {
  uint32_t device;
  uint64_t address;
  int64_t bytes;  // negative: taken back
  uint64_t allocated_total;
  uint64_t reserved_total;
};

void OnBlock(const BlockReport& report) noexcept;
void OnOutOfMemory(const BlockReport& report, const void* caller) noexcept;

// Sums over devices, for decisions between steps. Peaks since the process began.
struct AllocatorTotals {
  uint64_t allocated;
  uint64_t reserved;
  uint64_t peak_allocated;
  uint64_t peak_reserved;
};
[[nodiscard]] AllocatorTotals ReadAllocatorTotals() noexcept;

}  // namespace vramtrace::hooks
