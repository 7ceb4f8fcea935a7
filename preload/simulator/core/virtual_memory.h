#pragma once
// Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap): reservations cost nothing, physical
// memory is charged when it is created and given back when its last handle reference and its last mapping are
// both gone, in whichever order.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

inline constexpr uint64_t kPhysicalGranularity = 2u << 20;

enum class Location : int { kDevice, kHost };

VRAMTRACE_SIM_EXPORT Status ReserveAddresses(uint64_t bytes, uint64_t alignment, uint64_t hint,
                                             uint64_t* address);
// The whole reservation, with nothing mapped in it any more.
VRAMTRACE_SIM_EXPORT Status ReleaseAddresses(uint64_t address, uint64_t bytes);

VRAMTRACE_SIM_EXPORT Status CreatePhysical(Location location, int device, uint64_t bytes, uint64_t* handle);
VRAMTRACE_SIM_EXPORT Status RetainPhysical(uint64_t mapped_address, uint64_t* handle);
VRAMTRACE_SIM_EXPORT Status ReleasePhysical(uint64_t handle);
VRAMTRACE_SIM_EXPORT Status PhysicalProperties(uint64_t handle, Location* location, int* device,
                                               uint64_t* bytes);

VRAMTRACE_SIM_EXPORT Status Map(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t handle);
// Whole mappings only, as on a real device.
VRAMTRACE_SIM_EXPORT Status Unmap(uint64_t address, uint64_t bytes);
// kInvalidValue when part of the range is not mapped.
VRAMTRACE_SIM_EXPORT Status SetAccess(uint64_t address, uint64_t bytes);

}  // namespace vramtrace::simulator
