#include <gtest/gtest.h>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/virtual_memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

constexpr uint64_t kUnit = kPhysicalGranularity;

class VirtualMemory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(EnsureContext(0), Status::kOk);
    before_ = Used();
    ASSERT_EQ(ReserveAddresses(64 * kUnit, 0, 0, &address_), Status::kOk);
    EXPECT_EQ(Used(), before_) << "a reservation costs nothing";
  }
  void TearDown() override {
    EXPECT_EQ(ReleaseAddresses(address_, 64 * kUnit), Status::kOk);
    EXPECT_EQ(Used(), before_);
  }
  static uint64_t Used() { return PeekMemory(0).used_bytes; }
  static uint64_t Create(uint64_t bytes) {
    uint64_t handle = 0;
    EXPECT_EQ(CreatePhysical(Location::kDevice, 0, bytes, &handle), Status::kOk);
    return handle;
  }

  uint64_t before_ = 0;
  uint64_t address_ = 0;
};

TEST_F(VirtualMemory, IsReleasedWhenTheMappingGoesLast) {
  uint64_t handle = Create(10 * kUnit);
  EXPECT_EQ(Used(), before_ + 10 * kUnit);
  ASSERT_EQ(Map(address_, 10 * kUnit, 0, handle), Status::kOk);
  ASSERT_EQ(ReleasePhysical(handle), Status::kOk);
  EXPECT_EQ(Used(), before_ + 10 * kUnit) << "still mapped";
  ASSERT_EQ(Unmap(address_, 10 * kUnit), Status::kOk);
  EXPECT_EQ(Used(), before_);
}

TEST_F(VirtualMemory, IsReleasedWhenTheHandleGoesLast) {
  uint64_t handle = Create(kUnit);
  ASSERT_EQ(Map(address_, kUnit, 0, handle), Status::kOk);
  ASSERT_EQ(Unmap(address_, kUnit), Status::kOk);
  EXPECT_EQ(Used(), before_ + kUnit) << "the handle still holds it";
  ASSERT_EQ(ReleasePhysical(handle), Status::kOk);
  EXPECT_EQ(Used(), before_);
}

TEST_F(VirtualMemory, CountsRetainedReferences) {
  uint64_t handle = Create(kUnit);
  ASSERT_EQ(Map(address_, kUnit, 0, handle), Status::kOk);
  uint64_t again = 0;
  ASSERT_EQ(RetainPhysical(address_ + 100, &again), Status::kOk);
  EXPECT_EQ(again, handle);
  ASSERT_EQ(Unmap(address_, kUnit), Status::kOk);
  ASSERT_EQ(ReleasePhysical(handle), Status::kOk);
  EXPECT_EQ(Used(), before_ + kUnit);
  ASSERT_EQ(ReleasePhysical(handle), Status::kOk);
  EXPECT_EQ(Used(), before_);
  EXPECT_EQ(ReleasePhysical(handle), Status::kInvalidValue);
}

TEST_F(VirtualMemory, MapsTheSamePhysicalMemoryTwice) {
  uint64_t handle = Create(2 * kUnit);
  ASSERT_EQ(Map(address_, kUnit, 0, handle), Status::kOk);
  ASSERT_EQ(Map(address_ + kUnit, kUnit, kUnit, handle), Status::kOk);
  ASSERT_EQ(ReleasePhysical(handle), Status::kOk);
  ASSERT_EQ(Unmap(address_, kUnit), Status::kOk);
  EXPECT_EQ(Used(), before_ + 2 * kUnit);
  ASSERT_EQ(Unmap(address_ + kUnit, kUnit), Status::kOk);
}

TEST_F(VirtualMemory, UnmapsWholeMappingsOnly) {
  uint64_t handle = Create(4 * kUnit);
  ASSERT_EQ(Map(address_, 2 * kUnit, 0, handle), Status::kOk);
  ASSERT_EQ(Map(address_ + 2 * kUnit, 2 * kUnit, 2 * kUnit, handle), Status::kOk);
  EXPECT_EQ(Unmap(address_, kUnit), Status::kInvalidValue);
  EXPECT_EQ(Unmap(address_ + kUnit, 2 * kUnit), Status::kInvalidValue);
  EXPECT_EQ(SetAccess(address_, 4 * kUnit), Status::kOk);
  EXPECT_EQ(SetAccess(address_, 6 * kUnit), Status::kInvalidValue);
  EXPECT_EQ(Unmap(address_, 4 * kUnit), Status::kOk);
  EXPECT_EQ(ReleasePhysical(handle), Status::kOk);
}

TEST_F(VirtualMemory, RefusesWrongMappings) {
  uint64_t handle = Create(2 * kUnit);
  EXPECT_EQ(Map(address_, 3 * kUnit, 0, handle), Status::kInvalidValue) << "larger than the memory";
  EXPECT_EQ(Map(address_, kUnit, 2 * kUnit, handle), Status::kInvalidValue);
  EXPECT_EQ(Map(address_ + 4096, kUnit, 0, handle), Status::kInvalidValue) << "not aligned";
  EXPECT_EQ(Map(address_ + 63 * kUnit, 2 * kUnit, 0, handle), Status::kInvalidValue)
      << "past the reservation";
  EXPECT_EQ(Map(address_, kUnit, 0, handle + 1), Status::kInvalidValue);
  ASSERT_EQ(Map(address_, 2 * kUnit, 0, handle), Status::kOk);
  EXPECT_EQ(Map(address_ + kUnit, kUnit, 0, handle), Status::kInvalidValue) << "already mapped";
  EXPECT_EQ(ReleaseAddresses(address_, 64 * kUnit), Status::kInvalidValue) << "something is mapped";
  EXPECT_EQ(Unmap(address_, 2 * kUnit), Status::kOk);
  EXPECT_EQ(ReleasePhysical(handle), Status::kOk);
}

TEST_F(VirtualMemory, IsRefusedWhenTheCardIsFull) {
  uint64_t handle = 0;
  uint64_t total = DeviceAt(0)->total_bytes / kUnit * kUnit;
  EXPECT_EQ(CreatePhysical(Location::kDevice, 0, total, &handle), Status::kOutOfMemory);
  EXPECT_EQ(CreatePhysical(Location::kDevice, 0, kUnit + 1, &handle), Status::kInvalidValue);
}

TEST_F(VirtualMemory, OfTheHostIsNotCharged) {
  uint64_t handle = 0;
  ASSERT_EQ(CreatePhysical(Location::kHost, 0, kUnit, &handle), Status::kOk);
  EXPECT_EQ(Used(), before_);
  EXPECT_EQ(ReleasePhysical(handle), Status::kOk);
}

TEST_F(VirtualMemory, CopiesAcrossNeighbouringMappings) {
  uint64_t first = Create(kUnit);
  uint64_t second = Create(kUnit);
  ASSERT_EQ(Map(address_, kUnit, 0, first), Status::kOk);
  char text[] = "over the border";
  auto* border = reinterpret_cast<char*>(address_ + kUnit - 4);
  EXPECT_EQ(Copy(border, text, sizeof text), Status::kInvalidValue);
  ASSERT_EQ(Map(address_ + kUnit, kUnit, 0, second), Status::kOk);
  EXPECT_EQ(Copy(border, text, sizeof text), Status::kOk);
  char back[sizeof text] = {};
  EXPECT_EQ(Copy(back, border, sizeof text), Status::kOk);
  EXPECT_STREQ(back, text);
  EXPECT_EQ(Unmap(address_, 2 * kUnit), Status::kOk);
  EXPECT_EQ(ReleasePhysical(first), Status::kOk);
  EXPECT_EQ(ReleasePhysical(second), Status::kOk);
}

}  // namespace
}  // namespace vramtrace::simulator
