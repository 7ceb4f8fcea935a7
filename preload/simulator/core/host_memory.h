#pragma once
// Host memory that CUDA knows: page-locked by cudaHostAlloc, registered, or managed. It is ordinary memory
// and a registry. Managed memory is kept apart from the device's book: the driver migrates it page by page
// and may oversubscribe the card, so no charge at allocation would be right.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

enum class HostKind : int { kPinned, kRegistered, kManaged };

struct HostRange {
  uint64_t base = 0;
  uint64_t bytes = 0;
  HostKind kind = HostKind::kPinned;
  unsigned flags = 0;
  int device = 0;  // current when it was made
};

VRAMTRACE_SIM_EXPORT Status AllocateHost(HostKind kind, uint64_t bytes, unsigned flags, void** address);
VRAMTRACE_SIM_EXPORT Status FreeHost(void* address);
VRAMTRACE_SIM_EXPORT Status RegisterHost(void* address, uint64_t bytes, unsigned flags);
VRAMTRACE_SIM_EXPORT Status UnregisterHost(void* address);
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool FindHostRange(const void* address, HostRange* range);

}  // namespace vramtrace::simulator
