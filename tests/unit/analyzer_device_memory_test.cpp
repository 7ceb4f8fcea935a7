#include <gtest/gtest.h>

#include "analyzer/timeline/device_memory.h"

namespace vramtrace::timeline {
namespace {

using trace::Event;
using trace::MemoryKind;
constexpr uint64_t kMiB = 1 << 20;

Event At(uint64_t address, uint64_t bytes = 0) {
  Event event;
  event.address = address;
  event.bytes = bytes;
  return event;
}
Event Physical(uint64_t handle, uint64_t bytes = 0) {
  Event event = At(handle, bytes);
  event.memory_kind = MemoryKind::kPhysical;
  return event;
}
Event Mapping(uint64_t address, uint64_t bytes, uint64_t handle) {
  Event event = At(address, bytes);
  event.handle = handle;
  return event;
}
Event Query(uint64_t free_bytes, uint64_t total, trace::QueryReason reason = trace::QueryReason::kProgram) {
  Event event;
  event.free_bytes = free_bytes;
  event.total_bytes = total;
  event.reason = reason;
  return event;
}
void Allocate(DeviceMemory* memory, uint64_t address, uint64_t bytes) {
  (void)memory->Allocate(At(address, bytes), model::Phase::kForward, 0);
}

TEST(DeviceMemory, SegmentsOfTheCachingAllocatorAreReserved) {
  DeviceMemory memory;
  memory.DriverAllocate(At(0x1000, 20 * kMiB), true);
  memory.DriverAllocate(At(0x9000000, 5 * kMiB), false);
  EXPECT_EQ(memory.reserved(), 20 * kMiB);
  EXPECT_EQ(memory.driver_bytes(), 25 * kMiB);
  memory.DriverFree(At(0x1000));
  EXPECT_EQ(memory.reserved(), 0U);
  EXPECT_EQ(memory.driver_bytes(), 5 * kMiB);
}

TEST(DeviceMemory, AllocationOfAnUnknownCallerIsASegmentOnceItHoldsABlock) {
  DeviceMemory memory;
  memory.DriverAllocate(At(0x10000, 2 * kMiB), false);
  EXPECT_EQ(memory.reserved(), 0U);
  Allocate(&memory, 0x10000 + 4096, 512);
  EXPECT_EQ(memory.reserved(), 2 * kMiB);
  memory.DriverFree(At(0x10000));
  EXPECT_EQ(memory.reserved(), 0U);
  EXPECT_EQ(memory.contradictions().driver_free_unknown, 0U);
}

TEST(DeviceMemory, RefusedCallsChangeNothing) {
  DeviceMemory memory;
  Event refused = At(0x1000, kMiB);
  refused.result = 2;
  memory.DriverAllocate(refused, true);
  EXPECT_EQ(memory.reserved(), 0U);
  EXPECT_EQ(memory.driver_bytes(), 0U);
}

TEST(DeviceMemory, ExpandableSegmentsAreReservedWhileMapped) {
  DeviceMemory memory;
  memory.DriverAllocate(Physical(1, 20 * kMiB), true);
  memory.DriverAllocate(Physical(2, 20 * kMiB), true);
  EXPECT_EQ(memory.reserved(), 0U);
  EXPECT_EQ(memory.driver_bytes(), 40 * kMiB);
  memory.Map(Mapping(0x40000000, 20 * kMiB, 1));
  memory.Map(Mapping(0x40000000 + 20 * kMiB, 20 * kMiB, 2));
  EXPECT_EQ(memory.reserved(), 40 * kMiB);
  memory.Unmap(At(0x40000000, 40 * kMiB));  // one call for both pages
  EXPECT_EQ(memory.reserved(), 0U);
  memory.DriverFree(Physical(1));
  EXPECT_EQ(memory.driver_bytes(), 20 * kMiB);
}

TEST(DeviceMemory, ManagedAndImportedMemoryIsNotTakenFromTheDevice) {
  DeviceMemory memory;
  Event managed = At(0x1000, kMiB);
  managed.memory_kind = MemoryKind::kManaged;
  memory.DriverAllocate(managed, false);
  Event imported = At(0x2000000, kMiB);
  imported.memory_kind = MemoryKind::kImported;
  memory.DriverAllocate(imported, false);
  EXPECT_EQ(memory.driver_bytes(), 0U);
  memory.DriverFree(At(0x1000));
  EXPECT_EQ(memory.driver_bytes(), 0U);
}

TEST(DeviceMemory, UsedIsTheDevicesAnswerCarriedOn) {
  DeviceMemory memory;
  EXPECT_EQ(memory.device_used(), std::nullopt);
  memory.Query(Query(700, 1000, trace::QueryReason::kContext));
  EXPECT_EQ(memory.device_used(), 300U);
  EXPECT_EQ(memory.context_bytes(), 300U);
  memory.DriverAllocate(At(0x1000, 100), false);
  EXPECT_EQ(memory.device_used(), 400U);
  EXPECT_FALSE(memory.used_is_recorded());
  memory.Query(Query(590, 1000));
  EXPECT_EQ(memory.device_used(), 410U);
  EXPECT_TRUE(memory.used_is_recorded());
  memory.DriverFree(At(0x1000));
  EXPECT_EQ(memory.device_used(), 310U);
  EXPECT_EQ(memory.context_bytes(), 300U);
}

TEST(DeviceMemory, ImpossibleAnswerIsIgnored) {
  DeviceMemory memory;
  memory.Query(Query(2000, 1000));
  EXPECT_EQ(memory.device_used(), std::nullopt);
}

TEST(DeviceMemory, ContradictionsAreCounted) {
  DeviceMemory memory;
  EXPECT_EQ(memory.Free(At(0x40)), std::nullopt);
  Allocate(&memory, 0x1000, 512);
  Allocate(&memory, 0x1000, 1024);
  EXPECT_EQ(memory.allocated(), 1024U);
  EXPECT_TRUE(memory.Free(At(0x1000, 512)).has_value());
  memory.DriverFree(At(0x77));
  EXPECT_EQ(memory.contradictions().free_without_allocation, 1U);
  EXPECT_EQ(memory.contradictions().allocation_over_live, 1U);
  EXPECT_EQ(memory.contradictions().free_size_differs, 1U);
  EXPECT_EQ(memory.contradictions().driver_free_unknown, 1U);
}

TEST(DeviceMemory, CountersOfPyTorchAreCompared) {
  DeviceMemory memory;
  Event event = At(0x1000, 1024);
  event.has_totals = true;
  event.allocated_total = 1024 + 512;
  event.reserved_total = 2 * kMiB;
  memory.DriverAllocate(At(0x1000, 2 * kMiB), true);
  (void)memory.Allocate(event, model::Phase::kForward, 0);
  memory.CheckCounters(event);
  EXPECT_EQ(memory.counters().comparisons, 1U);
  EXPECT_EQ(memory.counters().last_allocated_difference, 512);
  EXPECT_EQ(memory.counters().allocated_differences, 1U);
  EXPECT_EQ(memory.counters().reserved_differences, 0U);
}

// Sums of a hostile trace stay defined.
TEST(DeviceMemory, SumsSaturate) {
  DeviceMemory memory;
  Allocate(&memory, 0x1000, UINT64_MAX);
  Allocate(&memory, 0x2000, UINT64_MAX);
  EXPECT_EQ(memory.allocated(), UINT64_MAX);
}

}  // namespace
}  // namespace vramtrace::timeline
