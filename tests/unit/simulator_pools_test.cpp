#include <gtest/gtest.h>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/pools.h"
#include "preload/simulator/core/streams.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

class Pools : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(CreatePool(0, &pool_), Status::kOk); }
  void TearDown() override { EXPECT_EQ(DestroyPool(pool_), Status::kOk); }
  void* Take(uint64_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(AllocateFromPool(pool_, bytes, &address), Status::kOk);
    return address;
  }
  Pool* pool_ = nullptr;
};

TEST_F(Pools, CountUsedAndReserved) {
  void* first = Take(1000);
  void* second = Take(2 * kMebibyte);
  PoolUsage usage = UsageOf(pool_);
  EXPECT_EQ(usage.used_bytes, 1024 + 2 * kMebibyte);
  EXPECT_EQ(usage.reserved_bytes, 32 * kMebibyte);
  EXPECT_EQ(FreeToPool(first), Status::kOk);
  EXPECT_EQ(FreeToPool(second), Status::kOk);
  usage = UsageOf(pool_);
  EXPECT_EQ(usage.used_bytes, 0u);
  EXPECT_EQ(usage.used_high_bytes, 1024 + 2 * kMebibyte);
  EXPECT_EQ(usage.reserved_bytes, 32 * kMebibyte) << "until something synchronises";
  ResetUsedHigh(pool_);
  EXPECT_EQ(UsageOf(pool_).used_high_bytes, 0u);
}

TEST_F(Pools, ReturnUnusedMemoryAtASynchronisation) {
  uint64_t before = PeekMemory(0).used_bytes;
  EXPECT_EQ(FreeToPool(Take(50 * kMebibyte)), Status::kOk);
  EXPECT_EQ(PeekMemory(0).used_bytes, before + 64 * kMebibyte);
  Synchronised(0);
  EXPECT_EQ(PeekMemory(0).used_bytes, before);
  EXPECT_EQ(UsageOf(pool_).reserved_bytes, 0u);
}

TEST_F(Pools, KeepWhatTheThresholdAllows) {
  SetReleaseThreshold(pool_, ~uint64_t{0});
  EXPECT_EQ(FreeToPool(Take(50 * kMebibyte)), Status::kOk);
  Synchronised(0);
  EXPECT_EQ(UsageOf(pool_).reserved_bytes, 64 * kMebibyte);
  TrimPool(pool_, 0);
  EXPECT_EQ(UsageOf(pool_).reserved_bytes, 0u);
}

TEST_F(Pools, ReuseFreedMemory) {
  void* first = Take(5 * kMebibyte);
  EXPECT_EQ(FreeToPool(first), Status::kOk);
  void* second = Take(4 * kMebibyte);
  EXPECT_EQ(second, first);
  EXPECT_EQ(UsageOf(pool_).reserved_bytes, 32 * kMebibyte);
  EXPECT_EQ(FreeToPool(second), Status::kOk);
}

TEST_F(Pools, DoNotKnowOtherMemory) {
  void* address = nullptr;
  ASSERT_EQ(Allocate(0, 512, &address), Status::kOk);
  EXPECT_EQ(FreeToPool(address), Status::kNotFound);
  EXPECT_EQ(Free(address), Status::kOk);
}

TEST_F(Pools, AreRefusedWhenTheCardIsFull) {
  void* address = nullptr;
  EXPECT_EQ(AllocateFromPool(pool_, DeviceAt(0)->total_bytes, &address), Status::kOutOfMemory);
}

TEST(DefaultPools, ExistAndCannotBeDestroyed) {
  ASSERT_NE(DefaultPool(0), nullptr);
  EXPECT_EQ(CurrentPool(0), DefaultPool(0));
  EXPECT_EQ(DestroyPool(DefaultPool(0)), Status::kInvalidValue);
  EXPECT_EQ(DefaultPool(9), nullptr);
}

}  // namespace
}  // namespace vramtrace::simulator
