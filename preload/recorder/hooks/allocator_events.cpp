#include "preload/recorder/hooks/allocator_events.h"

#include <atomic>

#include "preload/recorder/hooks/autograd_position.h"
#include "preload/recorder/hooks/call_scope.h"
#include "preload/recorder/hooks/device_facts.h"
#include "preload/recorder/hooks/module_watch.h"
#include "preload/recorder/hooks/requested_sizes.h"
#include "preload/recorder/hooks/trace_session.h"
#include "preload/recorder/stacks/internals.h"

namespace vramtrace::hooks {
namespace {

constexpr uint32_t kMaxDevices = 64;

// One device's counters are written under that device's allocator lock.
struct DeviceTotals {
  std::atomic<uint64_t> allocated{0};
  std::atomic<uint64_t> reserved{0};
  std::atomic<uint64_t> peak_allocated{0};
  std::atomic<uint64_t> peak_reserved{0};
};
DeviceTotals g_totals[kMaxDevices];

void Raise(std::atomic<uint64_t>& peak, uint64_t value) {
  if (value > peak.load(std::memory_order_relaxed)) peak.store(value, std::memory_order_relaxed);
}

void Count(const BlockReport& report) {
  if (report.device >= kMaxDevices) return;
  DeviceTotals& totals = g_totals[report.device];
  totals.allocated.store(report.allocated_total, std::memory_order_relaxed);
  totals.reserved.store(report.reserved_total, std::memory_order_relaxed);
  Raise(totals.peak_allocated, report.allocated_total);
  Raise(totals.peak_reserved, report.reserved_total);
}

record::BlockEvent EventOf(const BlockReport& report) {
  record::BlockEvent event;
  event.device = report.device;
  event.address = report.address;
  event.bytes = static_cast<uint64_t>(report.bytes < 0 ? -report.bytes : report.bytes);
  event.allocated_total = report.allocated_total;
  event.reserved_total = report.reserved_total;
  event.autograd = ReadAutogradPosition();
  return event;
}

}  // namespace

void OnBlock(const BlockReport& report) noexcept {
  const KeepErrno keep;
  Count(report);
  if (report.bytes >= 0) {
    const uint64_t requested = TakeRequestedSize(static_cast<uint64_t>(report.bytes));
    if (!OpenTrace()) return;
    record::BlockEvent event = EventOf(report);
    event.requested = requested;
    const StackCapture stack(WantsNativeFrames(event.bytes));
    WatchModules(stack.get(), event.autograd);
    record::BlockAllocated(event, stack.get());
  } else if (record::Recording()) {
    const record::BlockEvent event = EventOf(report);
    const StackCapture stack(/*native=*/false);
    record::BlockFreed(event, stack.get());
  }
}

void OnOutOfMemory(const BlockReport& report, const void* caller) noexcept {
  const KeepErrno keep;
  const uint64_t requested = TakeRequestedSize(UINT64_MAX);
  (void)requested;  // not this block's: there is none
  if (!OpenTrace()) return;
  const record::BlockEvent event = EventOf(report);
  const StackCapture stack(/*native=*/true);
  QueryDeviceMemory(Family::kRuntime, caller, record::QueryReason::kOutOfMemory);
  record::OutOfMemory(event, stack.get());
  AskForLabels(LabelRequest::kOutOfMemory);
}

AllocatorTotals ReadAllocatorTotals() noexcept {
  AllocatorTotals sum{};
  for (const DeviceTotals& totals : g_totals) {
    sum.allocated += totals.allocated.load(std::memory_order_relaxed);
    sum.reserved += totals.reserved.load(std::memory_order_relaxed);
    sum.peak_allocated += totals.peak_allocated.load(std::memory_order_relaxed);
    sum.peak_reserved += totals.peak_reserved.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace vramtrace::hooks
