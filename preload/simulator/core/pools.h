#pragma once
// Stream-ordered pools (cudaMallocAsync). Frees take effect at once. How the driver grows a pool is not
// public; modelled as 32 MiB steps, released at a synchronising call above the release threshold
// (README.md, What is modelled).

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

struct Pool;

struct PoolUsage {
  uint64_t reserved_bytes = 0;
  uint64_t reserved_high_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t used_high_bytes = 0;
  uint64_t release_threshold = 0;
};

[[nodiscard]] VRAMTRACE_SIM_EXPORT Pool* DefaultPool(int device);
VRAMTRACE_SIM_EXPORT Status CreatePool(int device, Pool** pool);
VRAMTRACE_SIM_EXPORT Status DestroyPool(Pool* pool);  // a default pool cannot be destroyed
[[nodiscard]] VRAMTRACE_SIM_EXPORT Pool* FindPool(void* handle);
[[nodiscard]] VRAMTRACE_SIM_EXPORT int PoolDevice(const Pool* pool);
// The pool that cudaMallocAsync uses on a device.
[[nodiscard]] VRAMTRACE_SIM_EXPORT Pool* CurrentPool(int device);
VRAMTRACE_SIM_EXPORT Status SetCurrentPool(int device, Pool* pool);

VRAMTRACE_SIM_EXPORT Status AllocateFromPool(Pool* pool, uint64_t bytes, void** address);
// kNotFound when the address is no pool's; the caller then tries Free.
VRAMTRACE_SIM_EXPORT Status FreeToPool(void* address);
VRAMTRACE_SIM_EXPORT PoolUsage UsageOf(Pool* pool);
VRAMTRACE_SIM_EXPORT void SetReleaseThreshold(Pool* pool, uint64_t bytes);
VRAMTRACE_SIM_EXPORT void ResetReservedHigh(Pool* pool);
VRAMTRACE_SIM_EXPORT void ResetUsedHigh(Pool* pool);
VRAMTRACE_SIM_EXPORT void TrimPool(Pool* pool, uint64_t keep_bytes);
VRAMTRACE_SIM_EXPORT void TrimPoolsToThreshold(int device);

}  // namespace vramtrace::simulator
