#include <gtest/gtest.h>

#include <cstring>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/host_memory.h"
#include "preload/simulator/core/memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

TEST(HostMemory, IsOrdinaryMemoryThatCudaKnows) {
  char* address = nullptr;
  ASSERT_EQ(AllocateHost(HostKind::kPinned, 10000, 4, reinterpret_cast<void**>(&address)), Status::kOk);
  std::memset(address, 1, 10000);
  HostRange range;
  ASSERT_TRUE(FindHostRange(address + 9999, &range));
  EXPECT_EQ(range.bytes, 10000u);
  EXPECT_EQ(range.flags, 4u);
  EXPECT_FALSE(FindHostRange(address + 10000, &range));
  EXPECT_EQ(FreeHost(address), Status::kOk);
  EXPECT_EQ(FreeHost(address), Status::kInvalidValue);
  EXPECT_EQ(FreeHost(nullptr), Status::kOk);
}

TEST(HostMemory, IsNotChargedToTheDevice) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  uint64_t before = PeekMemory(0).used_bytes;
  void* managed = nullptr;
  // More than the card has: managed memory may exceed it.
  ASSERT_EQ(AllocateHost(HostKind::kManaged, 30000 * kMebibyte, 1, &managed), Status::kOk);
  EXPECT_EQ(PeekMemory(0).used_bytes, before);
  EXPECT_EQ(FreeHost(managed), Status::kOk);
}

TEST(HostMemory, IsRegisteredAndUnregistered) {
  char buffer[100];
  ASSERT_EQ(RegisterHost(buffer, sizeof buffer, 0), Status::kOk);
  HostRange range;
  ASSERT_TRUE(FindHostRange(buffer + 50, &range));
  EXPECT_EQ(range.kind, HostKind::kRegistered);
  EXPECT_EQ(FreeHost(buffer), Status::kInvalidValue);
  EXPECT_EQ(UnregisterHost(buffer), Status::kOk);
  EXPECT_EQ(UnregisterHost(buffer), Status::kNotFound);
  EXPECT_EQ(RegisterHost(nullptr, 1, 0), Status::kInvalidValue);
}

}  // namespace
}  // namespace vramtrace::simulator
