// PyTorch reports every block that its caching allocator hands out. The bytes of the tensor that lived there
// before must not be seen in a new one: a stale found_inf made GradScaler skip a step and changed the peak.
// On a card a kernel would have overwritten them.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/report.h"
#include "preload/simulator/core/status.h"

namespace {

constexpr const char* kName = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

}  // namespace

// As in c10/core/Allocator.h and c10/core/Device.h.
namespace c10 {

struct Device {
  int8_t type;
  int8_t index;
};
constexpr int8_t kCuda = 1;

VRAMTRACE_SIM_EXPORT void reportMemoryUsageToProfiler(void* address, int64_t bytes, size_t allocated,
                                                      size_t reserved, Device device);

namespace {

using Report = void (*)(void*, int64_t, size_t, size_t, Device);

// PyTorch's own function: the next one after ours, or, since Python loads libc10 privately, that of libc10.
Report FindReal() {
  auto* found = reinterpret_cast<Report>(dlsym(RTLD_NEXT, kName));
  if (found == nullptr) {
    if (void* library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD)) {
      found = reinterpret_cast<Report>(dlsym(library, kName));
      dlclose(library);
    }
  }
  return found == &reportMemoryUsageToProfiler ? nullptr : found;
}

}  // namespace

void reportMemoryUsageToProfiler(void* address, int64_t bytes, size_t allocated, size_t reserved,
                                 Device device) {
  static std::atomic<Report> real{nullptr};
  if (device.type == kCuda && bytes > 0) {
    vramtrace::simulator::Clear(address, static_cast<uint64_t>(bytes));
    vramtrace::simulator::report::Add(vramtrace::simulator::report::Count::kClearedBlocks);
  }
  Report forward = real.load(std::memory_order_relaxed);
  if (forward == nullptr) {
    forward = FindReal();
    real.store(forward, std::memory_order_relaxed);
  }
  if (forward != nullptr) forward(address, bytes, allocated, reserved, device);
}

}  // namespace c10
