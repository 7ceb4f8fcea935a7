#pragma once
// What is asked about kernels. They do not run, and their code is not read: registers and local memory are
// assumptions, the same for every kernel (README.md, What is modelled).

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

struct KernelFacts {
  int registers = 32;  // a thread
  int static_shared_bytes = 0;
  int threads_per_block = 1024;
  int max_dynamic_shared_bytes = 49152;
};

// Kernels are known by the address of their host stub, or by a handle made for one loaded at run time.
VRAMTRACE_SIM_EXPORT void RegisterKernel(const void* handle, const char* name);        // a static string
VRAMTRACE_SIM_EXPORT void RegisterLoadedKernel(const void* handle, const char* name);  // copied
[[nodiscard]] VRAMTRACE_SIM_EXPORT const char* KernelName(const void* handle);  // "?" when it is not known
[[nodiscard]] VRAMTRACE_SIM_EXPORT KernelFacts FactsOf(const void* handle);
// kInvalidValue above what a block may have on the device.
VRAMTRACE_SIM_EXPORT Status SetMaxDynamicShared(const void* handle, int device, int bytes);

// What every launch does: makes the context, counts, adds to a capture. `stream` is a handle.
VRAMTRACE_SIM_EXPORT Status Launch(const void* kernel, void* stream);

// Newest code a wheel carries for the device: same major, highest minor not above the device's. CUB chooses
// its tuning, and so the size of its temporary storage, by it. 86 for 8.6 and 8.9.
[[nodiscard]] VRAMTRACE_SIM_EXPORT int CodeVersion(int device);

// Blocks of a kernel that one multiprocessor holds at once, by threads, blocks, registers and shared memory
// (cuda_occupancy.h in the toolkit has the rule); 0 when one block does not fit.
VRAMTRACE_SIM_EXPORT Status Occupancy(int device, const KernelFacts& kernel, int threads,
                                      uint64_t dynamic_shared_bytes, int* blocks);

}  // namespace vramtrace::simulator
