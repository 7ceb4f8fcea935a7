#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/allocator/units.h"
#include "analyzer/allocator/versions.h"

namespace vramtrace::allocator {

// Why a request failed, and the figures PyTorch prints, each under the name it has there.
struct OutOfMemory {
  enum class Reason : std::uint8_t {
    kNoMemory,  // the driver or the memory fraction refused, also after the cache was released
    kRejected,  // throw_on_cudamalloc_oom: refused without a retry
    kTooLarge,  // a request of 1 EiB or more
  };
  Reason reason = Reason::kNoMemory;
  Bytes requested = 0;
  Bytes rounded = 0;             // the block it would have been
  Bytes tried = 0;               // "Tried to allocate": the segment it would have needed
  Bytes total = 0;               // "total capacity"
  Bytes free = 0;                // "free", after the cache was released
  std::optional<Bytes> allowed;  // "allowed", with a memory fraction
  Bytes allocated = 0;           // of all pools
  Bytes reserved = 0;
  Bytes free_in_private_pools = 0;  // "allocated in private pools", which are in fact its free blocks
};

// Other users of the device, as NVML reports them; PyTorch from 2.1 prints them where it can load NVML.
struct ProcessMemory {
  struct Process {
    std::uint32_t id = 0;
    Bytes used = 0;
  };
  std::vector<Process> others;
  Bytes this_process = 0;
};

// A size as PyTorch prints it: two decimals, binary units, "N bytes" up to 1 KiB.
[[nodiscard]] std::string FormatSize(Bytes bytes);

// PyTorch's message, without the advice at its end.
[[nodiscard]] std::string Message(const OutOfMemory& failure, MessageStyle style, int device,
                                  const std::optional<ProcessMemory>& processes);

}  // namespace vramtrace::allocator
