#pragma once
// The simulated devices of this process: which card, how many, the calling thread's current one, contexts.

#include <cstdint>
#include <string>

#include "preload/catalogue/catalogue.h"
#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

struct Device {
  int index = 0;
  int physical = 0;  // of the machine's, whatever CUDA_VISIBLE_DEVICES says
  const catalogue::Gpu* gpu = nullptr;
  const catalogue::Limits* limits = nullptr;
  std::string name;  // what it calls itself
  int multiprocessors = 0;
  uint64_t other_tenant_bytes = 0;  // held by another process
  uint64_t total_bytes = 0;         // cudaMemGetInfo's total
  uint64_t nvml_total_bytes = 0;    // NVML's total
  uint64_t context_bytes = 0;       // charged at the device's first use
  unsigned char uuid[16] = {};
  char pci_bus_id[16] = {};  // 0000:01:00.0
};

// 0 after fork, or when VRAMTRACE_SIM_GPU names no known card (said once on stderr).
[[nodiscard]] VRAMTRACE_SIM_EXPORT int DeviceCount();
// nullptr when there is no such device.
[[nodiscard]] VRAMTRACE_SIM_EXPORT const Device* DeviceAt(int index);

// The machine's devices whatever CUDA_VISIBLE_DEVICES says, as NVML sees them.
[[nodiscard]] VRAMTRACE_SIM_EXPORT int PhysicalDeviceCount();
[[nodiscard]] VRAMTRACE_SIM_EXPORT const Device* PhysicalDeviceAt(int index);
// GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
[[nodiscard]] VRAMTRACE_SIM_EXPORT std::string UuidText(const Device& device);

// Current device of the calling thread, as cudaSetDevice leaves it.
[[nodiscard]] VRAMTRACE_SIM_EXPORT int CurrentDevice();
VRAMTRACE_SIM_EXPORT Status SetCurrentDevice(int index);

// Charges the context at the first call for a device. Everything that on a real card needs a context calls it
// first: allocations, launches, streams, library handles. kOutOfMemory when the card cannot hold it.
VRAMTRACE_SIM_EXPORT Status EnsureContext(int device);
inline Status EnsureContext() { return EnsureContext(CurrentDevice()); }
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool HasContext(int device);

// Value of a device attribute; numbers are those of CUdevice_attribute, which cudaDeviceAttr shares.
// kInvalidValue for a number that the public headers do not declare.
VRAMTRACE_SIM_EXPORT Status DeviceAttribute(int device, int attribute, int* value);

// The CUDA version that the driver reports, as 13020: that of the runtime the program uses, because libraries
// of one soname for both majors must agree with the wheel. The newest headers' before a runtime is used.
[[nodiscard]] VRAMTRACE_SIM_EXPORT int DriverVersion();
VRAMTRACE_SIM_EXPORT void RuntimeInUse(int version);

// True in a child forked after the first use of a device.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool Forked();

}  // namespace vramtrace::simulator

// The sign that this process's devices are simulated, looked for by name (dlsym) by who wants to say so.
extern "C" VRAMTRACE_SIM_EXPORT const int vramtrace_simulator_present;
