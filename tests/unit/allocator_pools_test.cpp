#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

TEST(Pools, KeepTheirMemoryUntilTheyAreReleased) {
  Device device(1024 * kMiB);
  const PoolId pool = device.allocator.CreatePool({});
  const Allocation block = device.Allocate(32 * kMiB, StreamId::kDefault, pool);
  device.allocator.Free(block.block);
  device.Allocate(32 * kMiB);
  EXPECT_EQ(device.reserved(), 64 * kMiB) << "not shared with the default pool";
  device.allocator.EmptyCache();
  EXPECT_EQ(device.reserved(), 64 * kMiB);
  device.allocator.EmptyCache(pool);
  EXPECT_EQ(device.reserved(), 64 * kMiB) << "still in use";
  device.allocator.ReleasePool(pool);
  device.allocator.EmptyCache(pool);
  EXPECT_EQ(device.reserved(), 32 * kMiB);
  EXPECT_TRUE(std::holds_alternative<UnknownPool>(device.allocator.Allocate(1, StreamId::kDefault, pool)));
  EXPECT_TRUE(
      std::holds_alternative<UnknownPool>(device.allocator.Allocate(1, StreamId::kDefault, PoolId{99})));
}

TEST(Pools, FreeBlocksOfAPrivatePoolAreAFigureOfTheirOwn) {
  Device device(100 * kMiB);
  const PoolId pool = device.allocator.CreatePool({});
  device.allocator.Free(device.Allocate(40 * kMiB, StreamId::kDefault, pool).block);
  device.Allocate(20 * kMiB);
  const OutOfMemory failure = device.Fail(64 * kMiB);
  EXPECT_EQ(failure.free_in_private_pools, 40 * kMiB);
  EXPECT_EQ(failure.allocated, 20 * kMiB);
  EXPECT_EQ(failure.reserved, 60 * kMiB);
  EXPECT_EQ(failure.free, 40 * kMiB);
}

TEST(Pools, OverflowPoolsHelpBeforeAnythingIsReleased) {
  Device device(100 * kMiB);
  const PoolId pool = device.allocator.CreatePool({.use_on_oom = true});
  const Allocation spare = device.Allocate(60 * kMiB, StreamId::kDefault, pool);
  device.allocator.Free(spare.block);
  const Allocation block = device.Allocate(50 * kMiB);
  EXPECT_EQ(block.address, spare.address);
  EXPECT_EQ(device.retries(), 0);
  Device old(100 * kMiB, "", {2, 6});
  const PoolId ignored = old.allocator.CreatePool({.use_on_oom = true});
  old.allocator.Free(old.Allocate(60 * kMiB, StreamId::kDefault, ignored).block);
  old.Fail(50 * kMiB);
}

TEST(Pools, WithoutSplittingHandOutWholeSegments) {
  Device device(100 * kMiB);
  const PoolId pool = device.allocator.CreatePool({.no_split = true});
  EXPECT_EQ(device.Allocate(100, StreamId::kDefault, pool).size, 2 * kMiB);
  EXPECT_EQ(device.Allocate(2 * kMiB, StreamId::kDefault, pool).size, 20 * kMiB);
}

TEST(Pools, CustomAllocatorsGiveNoExpandableSegments) {
  Device device(100 * kMiB, "expandable_segments:True");
  const PoolId custom = device.allocator.CreatePool({.custom_allocator = true});
  device.Allocate(12 * kMiB, StreamId::kDefault, custom);
  EXPECT_EQ(device.allocator.statistics().all.segment.current, 1);
  EXPECT_EQ(device.reserved(), 12 * kMiB);
  const PoolId plain = device.allocator.CreatePool({});
  device.Allocate(12 * kMiB, StreamId::kDefault, plain);
  EXPECT_EQ(device.allocator.statistics().all.segment.current, 1);
  EXPECT_EQ(device.reserved(), 32 * kMiB);
}

TEST(Pools, InUseStopTheRetryUpTo212) {
  for (const PyTorchVersion version : {PyTorchVersion{2, 12}, PyTorchVersion{2, 13}}) {
    Device device(100 * kMiB, "", version);
    device.allocator.Free(device.Allocate(60 * kMiB).block);
    const PoolId pool = device.allocator.CreatePool({});
    device.allocator.BeginPoolUse();
    const AllocationResult result = device.allocator.Allocate(80 * kMiB, StreamId::kDefault, pool);
    EXPECT_EQ(std::holds_alternative<OutOfMemory>(result), version.minor == 12);
    device.allocator.EndPoolUse();
  }
}

}  // namespace
}  // namespace vramtrace::allocator
