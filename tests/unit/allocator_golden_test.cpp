// Figures of the real allocator of PyTorch 2.6.0, each from a fresh process.
#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

struct OneRequest {
  Bytes requested;
  std::int64_t allocated;
  std::int64_t reserved;
  std::int64_t inactive_split;
  std::int64_t expandable_reserved;
  std::int64_t expandable_allocated;
};

constexpr OneRequest kOneRequest[] = {
    {0, 0, 0, 0, 0, 0},
    {1, 512, 2097152, 2096640, 2097152, 512},
    {513, 1024, 2097152, 2096128, 2097152, 1024},
    {1048576, 1048576, 2097152, 1048576, 2097152, 1048576},
    {1048577, 1049088, 20971520, 19922432, 20971520, 1049088},
    {10485248, 10485248, 20971520, 10486272, 20971520, 10485248},
    {10485249, 10485760, 10485760, 0, 20971520, 10485760},
    {10485760, 10485760, 10485760, 0, 20971520, 10485760},
    {10485761, 10486272, 12582912, 2096640, 20971520, 10486272},
    {19922944, 20971520, 20971520, 0, 20971520, 19922944},
    {33554433, 33554944, 35651584, 2096640, 41943040, 33554944},
    {25000000, 25165824, 25165824, 0, 41943040, 25000448},
    {100000000, 100663296, 100663296, 0, 104857600, 100000256},
};

TEST(Golden, OneRequestOnAFreshDevice) {
  for (const OneRequest& row : kOneRequest) {
    SCOPED_TRACE(row.requested);
    Device device(1024 * kMiB, "", {2, 6});
    device.Allocate(row.requested);
    EXPECT_EQ(device.allocated(), row.allocated);
    EXPECT_EQ(device.reserved(), row.reserved);
    EXPECT_EQ(device.allocator.statistics().all.inactive_split_bytes.current, row.inactive_split);
    EXPECT_EQ(device.allocator.statistics().all.requested_bytes.current,
              static_cast<std::int64_t>(row.requested));

    Device expandable(1024 * kMiB, "expandable_segments:True", {2, 6});
    expandable.Allocate(row.requested);
    EXPECT_EQ(expandable.reserved(), row.expandable_reserved);
    EXPECT_EQ(expandable.allocated(), row.expandable_allocated);
    EXPECT_EQ(expandable.allocator.statistics().all.inactive_split_bytes.current, 0);
  }
}

TEST(Golden, SegmentsGoBackForLargerOnesUntilNoneIsFree) {
  Device device(256 * kMiB, "", {2, 6});
  const Allocation a1 = device.Allocate(64 * kMiB);
  const Allocation a2 = device.Allocate(64 * kMiB);
  const Allocation a3 = device.Allocate(64 * kMiB);
  EXPECT_EQ(device.reserved(), 192 * kMiB);
  device.allocator.Free(a1.block);
  device.allocator.Free(a3.block);
  const Allocation a4 = device.Allocate(16 * kMiB);
  EXPECT_EQ(a4.address, a1.address);
  device.Allocate(96 * kMiB);
  EXPECT_EQ(device.reserved(), 224 * kMiB);
  EXPECT_EQ(device.retries(), 1);
  device.allocator.Free(a2.block);
  device.Allocate(96 * kMiB);
  EXPECT_EQ(device.reserved(), 256 * kMiB);
  EXPECT_EQ(device.retries(), 2);
  device.allocator.Free(a4.block);
  const OutOfMemory failure = device.Fail(128 * kMiB);
  EXPECT_EQ(device.reserved(), 192 * kMiB);
  EXPECT_EQ(device.retries(), 3);
  EXPECT_EQ(failure.free, 64 * kMiB);
  EXPECT_EQ(failure.rounded, 134217728U);
  EXPECT_EQ(
      Message(failure, Rules({2, 6}).message, 0, {}),
      "CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of 256.00 MiB of which "
      "64.00 MiB is free. Of the allocated memory 192.00 MiB is allocated by PyTorch, and 0 bytes is "
      "reserved "
      "by PyTorch but unallocated.");
}

TEST(Golden, ExpandableSegmentFillsItsHolesAndKeepsPagesThatAreNotFree) {
  Device device(256 * kMiB, "expandable_segments:True", {2, 6});
  const Allocation a1 = device.Allocate(64 * kMiB);
  EXPECT_EQ(device.reserved(), 80 * kMiB);
  const Allocation a2 = device.Allocate(64 * kMiB);
  EXPECT_EQ(device.reserved(), 140 * kMiB);
  const Allocation a3 = device.Allocate(64 * kMiB);
  EXPECT_EQ(device.reserved(), 200 * kMiB);
  device.allocator.Free(a1.block);
  device.allocator.Free(a3.block);
  const Allocation a4 = device.Allocate(16 * kMiB);
  EXPECT_EQ(a4.address, a1.address);
  const Allocation a5 = device.Allocate(96 * kMiB);
  EXPECT_EQ(a5.address - a1.address, 128 * kMiB);
  EXPECT_EQ(device.reserved(), 240 * kMiB);
  EXPECT_EQ(device.retries(), 0);
  device.allocator.Free(a2.block);
  const Allocation a6 = device.Allocate(96 * kMiB);
  EXPECT_EQ(a6.address - a1.address, 16 * kMiB);
  EXPECT_EQ(device.reserved(), 240 * kMiB);
  device.allocator.Free(a4.block);
  device.Fail(128 * kMiB);
  EXPECT_EQ(device.reserved(), 240 * kMiB);
  EXPECT_EQ(device.retries(), 1);
}

}  // namespace
}  // namespace vramtrace::allocator
