#pragma once

#include <algorithm>
#include <cstdint>

#include "analyzer/allocator/units.h"

namespace vramtrace::allocator {

// One counter of torch.cuda.memory_stats().
struct Counter {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  // sum of all increases
  std::int64_t freed = 0;      // sum of all decreases

  void Increase(Bytes amount) {
    current += static_cast<std::int64_t>(amount);
    allocated += static_cast<std::int64_t>(amount);
    peak = std::max(peak, current);
  }
  void Decrease(Bytes amount) {
    current -= static_cast<std::int64_t>(amount);
    freed += static_cast<std::int64_t>(amount);
  }
  void Change(std::int64_t amount) {
    if (amount > 0) Increase(static_cast<Bytes>(amount));
    if (amount < 0) Decrease(static_cast<Bytes>(-amount));
  }
  friend bool operator==(const Counter&, const Counter&) = default;
};

// The counters kept for all pools together, for the small pools and for the large ones.
struct PoolStatistics {
  Counter allocation;            // blocks handed out
  Counter segment;               // segments held; pages of expandable segments are not counted
  Counter active;                // blocks handed out or waiting for another stream
  Counter inactive_split;        // free blocks in segments that are partly used
  Counter allocated_bytes;       // bytes of `allocation`, whole blocks
  Counter reserved_bytes;        // bytes held from the driver
  Counter active_bytes;          // bytes of `active`
  Counter inactive_split_bytes;  // bytes of `inactive_split`
  Counter requested_bytes;       // what the program asked for, of active blocks
  friend bool operator==(const PoolStatistics&, const PoolStatistics&) = default;
};

struct Statistics {
  PoolStatistics all;
  PoolStatistics small_pool;
  PoolStatistics large_pool;
  Counter oversize_allocations;  // blocks of at least max_split_size
  Counter oversize_segments;
  std::int64_t num_alloc_retries = 0;  // attempts after the whole cache was released
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0;    // segments taken and ranges mapped
  std::int64_t num_device_free = 0;     // segments given back and ranges unmapped
  std::int64_t num_oom_rejections = 0;  // throw_on_cudamalloc_oom
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

}  // namespace vramtrace::allocator
