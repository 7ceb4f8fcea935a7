// PyTorch's caching allocator tells c10's profiler interface of every block it hands out or takes back, with
// or without a profiler. Called with the device's allocator lock held: nothing here may wait or call into
// PyTorch.

#include "preload/recorder/hooks/allocator_events.h"
#include "preload/recorder/hooks/declarations.h"
#include "preload/recorder/hooks/real_functions.h"
#include "preload/recorder/stacks/internals.h"

using vramtrace::hooks::Hook;
using vramtrace::hooks::RealOf;

namespace {

constexpr int8_t kCuda = 1;
constexpr int8_t kHip = 20;

bool IsGpu(TorchDevice device) { return device.type == kCuda || device.type == kHip; }

uint32_t IndexOf(TorchDevice device) { return device.index < 0 ? 0 : static_cast<uint32_t>(device.index); }

void OnUsage(void* address, int64_t bytes, uint64_t allocated, uint64_t reserved, TorchDevice device) {
  if (!IsGpu(device)) return;  // CPU memory is reported by the same function while a profiler runs
  vramtrace::hooks::OnBlock({.device = IndexOf(device),
                             .address = reinterpret_cast<uintptr_t>(address),
                             .bytes = bytes,
                             .allocated_total = allocated,
                             .reserved_total = reserved});
}

void OnOutOfMemory(int64_t bytes, uint64_t allocated, uint64_t reserved, TorchDevice device,
                   const void* caller) {
  if (!IsGpu(device)) return;
  vramtrace::hooks::OnOutOfMemory({.device = IndexOf(device),
                                   .address = 0,
                                   .bytes = bytes,
                                   .allocated_total = allocated,
                                   .reserved_total = reserved},
                                  caller);
}

}  // namespace

// A report is forwarded so that torch.profiler keeps its memory view; without a real one there is no
// profiler.
#define VRAMTRACE_FORWARD(name, ...)                                        \
  const auto real = RealOf(Hook::name, &name, __builtin_return_address(0)); \
  if (real != nullptr) real(__VA_ARGS__)

extern "C" {

VRAMTRACE_EXPORT void ReportMemoryUsage(void* address, int64_t bytes, size_t allocated, size_t reserved,
                                        TorchDevice device) {
  OnUsage(address, bytes, allocated, reserved, device);
  VRAMTRACE_FORWARD(ReportMemoryUsage, address, bytes, allocated, reserved, device);
}

VRAMTRACE_EXPORT void ReportMemoryUsageSigned(void* address, int64_t bytes, int64_t allocated,
                                              int64_t reserved, TorchDevice device) {
  OnUsage(address, bytes, static_cast<uint64_t>(allocated), static_cast<uint64_t>(reserved), device);
  VRAMTRACE_FORWARD(ReportMemoryUsageSigned, address, bytes, allocated, reserved, device);
}

// PyTorch 1.8 and older pass the allocator's own bookkeeping object: no address to record.
VRAMTRACE_EXPORT void ReportMemoryUsageShort(void* block, int64_t bytes, TorchDevice device) {
  vramtrace::stacks::SetInternal(vramtrace::stacks::Internal::kBlockEvents, false,
                                 "PyTorch 1.8 and older report blocks without their address");
  VRAMTRACE_FORWARD(ReportMemoryUsageShort, block, bytes, device);
}

VRAMTRACE_EXPORT void ReportOutOfMemory(int64_t bytes, size_t allocated, size_t reserved,
                                        TorchDevice device) {
  OnOutOfMemory(bytes, allocated, reserved, device, __builtin_return_address(0));
  VRAMTRACE_FORWARD(ReportOutOfMemory, bytes, allocated, reserved, device);
}

VRAMTRACE_EXPORT void ReportOutOfMemorySigned(int64_t bytes, int64_t allocated, int64_t reserved,
                                              TorchDevice device) {
  OnOutOfMemory(bytes, static_cast<uint64_t>(allocated), static_cast<uint64_t>(reserved), device,
                __builtin_return_address(0));
  VRAMTRACE_FORWARD(ReportOutOfMemorySigned, bytes, allocated, reserved, device);
}

VRAMTRACE_EXPORT void ReportOutOfMemoryUnsigned(size_t bytes, size_t allocated, size_t reserved,
                                                TorchDevice device) {
  OnOutOfMemory(static_cast<int64_t>(bytes), allocated, reserved, device, __builtin_return_address(0));
  VRAMTRACE_FORWARD(ReportOutOfMemoryUnsigned, bytes, allocated, reserved, device);
}

}  // extern "C"
