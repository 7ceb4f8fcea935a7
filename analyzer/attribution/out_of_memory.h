#pragma once
// Why a request was refused, as arithmetic.

#include <cstdint>

#include "analyzer/attribution/breakdown.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"

namespace vramtrace::attribution {

enum class Reason {
  kShortage,       // the bytes did not exist: more was needed than free and cached together
  kFragmentation,  // enough was cached free, but in no piece as large as the request
  kLimit,          // the device had enough free: a limit of the process or of the driver refused
  kUnknown,        // the device's free memory is not known
};

struct OutOfMemory {
  Reason reason = Reason::kUnknown;
  uint64_t requested = 0;             // bytes of the block, as the caching allocator rounded them
  uint64_t from_driver = 0;           // bytes of the segment that it asked the driver for
  bool from_driver_recorded = false;  // else derived by the allocator's rounding rules
  bool caching_allocator = true;
  bool free_known = false;
  uint64_t device_free = 0;
  uint64_t device_total = 0;
  uint64_t device_used = 0;
  uint64_t allocated = 0;
  uint64_t reserved = 0;
  uint64_t cached_free = 0;   // reserved less allocated
  uint64_t largest_hole = 0;  // the largest free piece in the pool that serves the request
  uint64_t holes = 0;
  // What is missing: bytes that would have to be free on the device for this one request.
  uint64_t missing = 0;
  // Device memory with which this request would have succeeded, everything else unchanged.
  uint64_t device_needed = 0;
};

[[nodiscard]] OutOfMemory ExplainRefusal(const timeline::Refusal& refusal, const timeline::Snapshot& snapshot,
                                         const FreeSpace& free_space);

}  // namespace vramtrace::attribution
