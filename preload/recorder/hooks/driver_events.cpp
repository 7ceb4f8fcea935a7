#include "preload/recorder/hooks/driver_events.h"

#include <atomic>

#include "preload/recorder/hooks/device_facts.h"
#include "preload/recorder/hooks/trace_session.h"

namespace vramtrace::hooks {
namespace {

constexpr uint32_t kOutOfMemory = 2;                 // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
constexpr uint64_t kPoolQueryInterval = 10'000'000;  // ns; a memory pool is asked thousands of times a second

// Device memory of this process changes with these, so that the device is worth asking.
bool ChangesDeviceMemory(const DriverCall& call) {
  return call.space == Space::kDevice && call.kind != record::MemoryKind::kManaged &&
         call.kind != record::MemoryKind::kImported && call.kind != record::MemoryKind::kGraph;
}

bool MayQueryNow(const DriverCall& call) {
  if (!ChangesDeviceMemory(call)) return false;
  if (call.kind != record::MemoryKind::kPool) return true;
  static std::atomic<uint64_t> last{0};
  const uint64_t now = NowNs();
  uint64_t previous = last.load(std::memory_order_relaxed);
  return now - previous >= kPoolQueryInterval &&
         last.compare_exchange_strong(previous, now, std::memory_order_relaxed);
}

record::DriverEvent EventOf(const DriverCall& call) {
  const HookRow& row = RowOf(call.hook);
  record::DriverEvent event;
  event.function = row.symbol;
  event.caller = call.caller;
  event.device =
      call.device >= 0 ? static_cast<uint32_t>(call.device) : CurrentDevice(row.family, call.caller);
  event.kind = call.kind;
  event.stream = call.stream;
  return event;
}

}  // namespace

void BeforeAllocation(const DriverCall& call) noexcept {
  if (ChangesDeviceMemory(call)) MeetDevice(RowOf(call.hook).family, call.caller);
}

void AfterAllocation(const DriverCall& call, Allocated allocated, uint32_t result,
                     uint64_t duration_ns) noexcept {
  // Other failures are the program's business: no device, a wrong argument, a driver that is shutting down.
  if ((result != 0 && result != kOutOfMemory) || !OpenTrace()) return;
  record::DriverEvent event = EventOf(call);
  event.address = result == 0 ? allocated.address : 0;
  event.bytes = allocated.bytes;
  event.result = result;
  event.duration_ns = duration_ns;
  const StackCapture stack(/*native=*/true);
  if (call.space == Space::kHost) {
    record::HostAllocated(event, stack.get());
    return;
  }
  record::DriverAllocated(event, stack.get());
  if (result != 0) {
    QueryDeviceMemory(RowOf(call.hook).family, call.caller, record::QueryReason::kOutOfMemory);
  } else if (MayQueryNow(call)) {
    QueryDeviceMemory(RowOf(call.hook).family, call.caller, record::QueryReason::kDriverAllocate);
  }
}

void BeforeFree(const DriverCall& call, uint64_t address) noexcept {
  if (!record::Recording()) return;
  record::DriverEvent event = EventOf(call);
  event.address = address;
  const StackCapture stack(/*native=*/true);
  if (call.space == Space::kHost) {
    record::HostFreed(event, stack.get());
  } else {
    record::DriverFreed(event, stack.get());
  }
}

void AfterFree(const DriverCall& call, uint32_t result) noexcept {
  if (result != 0 || !record::Recording() || !MayQueryNow(call)) return;
  QueryDeviceMemory(RowOf(call.hook).family, call.caller, record::QueryReason::kDriverFree);
}

void AfterTrim(const DriverCall& call, uint32_t result) noexcept {
  if (result != 0 || !record::Recording()) return;
  QueryDeviceMemory(RowOf(call.hook).family, call.caller, record::QueryReason::kDriverFree);
}

}  // namespace vramtrace::hooks
