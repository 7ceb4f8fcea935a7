#pragma once
// The memory book of the simulated devices: who holds which bytes, charged as the driver charges them.
//
// Rule (preload/simulator/README.md, Charging): the driver hands out 2 MiB pages. A request above 1 MiB takes
// whole pages; smaller ones share pages, placed first fit at 512 B. This reproduces every row of a published
// measurement. A request is refused exactly when the pages it needs exceed the card's total.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

inline constexpr uint64_t kPageBytes = 2u << 20;
inline constexpr uint64_t kSmallRequestBytes = 1u << 20;  // up to here requests share pages
inline constexpr uint64_t kAddressAlignment = 512;

enum class RangeKind : int { kDevice, kMapped, kModule };

// A live piece of device address space.
struct Range {
  uint64_t base = 0;
  uint64_t bytes = 0;
  int device = 0;
  RangeKind kind = RangeKind::kDevice;
};

struct MemoryInfo {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;     // context included
  uint64_t peak_bytes = 0;     // highest used_bytes of this process
  uint64_t context_bytes = 0;  // 0 before the first use
  uint64_t outside_bytes = 0;  // ChargeOutside, context excluded
};

// Memory as cudaMalloc gives it: 512 B aligned, 2 MiB above 1 MiB. Zero bytes give a null address.
VRAMTRACE_SIM_EXPORT Status Allocate(int device, uint64_t bytes, void** address);
VRAMTRACE_SIM_EXPORT Status Free(void* address);  // null is fine; kInvalidValue when it is not a start

// Memory that the program cannot address: handles of libraries, communicators. `owner` is a static string
// (libcublas.so.13) under which the report lists it.
VRAMTRACE_SIM_EXPORT Status ChargeOutside(int device, uint64_t bytes, const char* owner);
VRAMTRACE_SIM_EXPORT void UnchargeOutside(int device, uint64_t bytes, const char* owner);

// Creates the context first, as cudaMemGetInfo does.
VRAMTRACE_SIM_EXPORT Status QueryMemory(int device, MemoryInfo* info);
// The same without touching the device.
[[nodiscard]] VRAMTRACE_SIM_EXPORT MemoryInfo PeekMemory(int device);

// True for an address of the simulated devices' address space, allocated or not.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool IsDeviceAddress(const void* address);
// The allocation or mapping that holds an address, interior ones too.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool FindRange(const void* address, Range* range);

// Addressable memory of a module (a __device__ variable): part of the context's charge, so not charged here.
VRAMTRACE_SIM_EXPORT Status AllocateModuleMemory(int device, uint64_t bytes, void** address);
VRAMTRACE_SIM_EXPORT Status FreeModuleMemory(void* address);

}  // namespace vramtrace::simulator
