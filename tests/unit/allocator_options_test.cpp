#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

TEST(Rounding, DivisionsOfPowersOfTwo) {
  PowerOfTwoDivisions divisions{};
  EXPECT_EQ(RoundSize(1, divisions, false), 512U);
  EXPECT_EQ(RoundSize(1200, divisions, false), 1536U);
  divisions.fill(4);
  EXPECT_EQ(RoundSize(1200, divisions, false), 1536U)
      << "up to 512 times the divisions only multiples of 512";
  EXPECT_EQ(RoundSize(2049, divisions, false), 2560U);
  EXPECT_EQ(RoundSize(5 * kMiB + 1, divisions, false), 6 * kMiB);
  EXPECT_EQ(RoundSize(8 * kMiB, divisions, false), 8 * kMiB);
  divisions.fill(1);
  EXPECT_EQ(RoundSize(5 * kMiB + 1, divisions, false), 5 * kMiB + 512);
  EXPECT_EQ(RoundSize(5 * kMiB + 1, divisions, true), 5 * kMiB + 1) << "before 2.2 it was left as it is";
  divisions.fill(1024);
  EXPECT_EQ(RoundSize(525'000, divisions, false), 525'312U);
}

TEST(Rounding, SegmentsOfTheLargePool) {
  EXPECT_EQ(SegmentBytes(512, 20 * kMiB), 2 * kMiB);
  EXPECT_EQ(SegmentBytes(kMiB + 512, 20 * kMiB), 20 * kMiB);
  EXPECT_EQ(SegmentBytes(kMiB + 512, 64 * kMiB), 64 * kMiB);
  EXPECT_EQ(SegmentBytes(10 * kMiB, 20 * kMiB), 10 * kMiB);
  EXPECT_EQ(SegmentBytes(10 * kMiB + 512, 20 * kMiB), 12 * kMiB);
}

TEST(MaxSplit, LargeBlocksAreNeitherSplitNorGivenToSmallRequests) {
  Device device(1024 * kMiB, "max_split_size_mb:64");
  const Allocation large = device.Allocate(100 * kMiB);
  device.allocator.Free(large.block);
  const Allocation small = device.Allocate(30 * kMiB);
  EXPECT_NE(small.address, large.address);
  EXPECT_EQ(device.reserved(), 130 * kMiB);
  EXPECT_EQ(device.Allocate(90 * kMiB).address, large.address) << "within 20 MiB it is used whole";
  EXPECT_EQ(device.allocated(), 130 * kMiB);
  EXPECT_EQ(device.allocator.statistics().oversize_allocations.current, 1);
}

TEST(MaxSplit, OversizeSegmentsGoBackBeforeTheWholeCache) {
  Device device(300 * kMiB, "max_split_size_mb:64");
  const Allocation kept = device.Allocate(30 * kMiB);
  const Allocation large = device.Allocate(100 * kMiB);
  const Allocation larger = device.Allocate(150 * kMiB);
  for (const Allocation& block : {kept, large, larger}) device.allocator.Free(block.block);
  device.Allocate(85 * kMiB);
  EXPECT_EQ(device.reserved(), 280 * kMiB) << "100 MiB fits within the rounding allowed";
  device.Allocate(120 * kMiB);
  EXPECT_EQ(device.reserved(), 250 * kMiB) << "150 MiB given back, 120 taken";
  EXPECT_EQ(device.retries(), 0);
}

TEST(Fraction, LimitsWhatIsHeldAndIsPartOfTheFigures) {
  Device device(1000 * kMiB, "per_process_memory_fraction:0.1");
  EXPECT_EQ(device.allocator.limit(), 100 * kMiB);
  device.Allocate(64 * kMiB);
  const OutOfMemory failure = device.Fail(40 * kMiB);
  EXPECT_EQ(failure.allowed, 100 * kMiB);
  EXPECT_EQ(failure.free, 936 * kMiB);
  EXPECT_EQ(device.allocator.statistics().num_ooms, 1);
  device.allocator.SetMemoryFraction(1.0);
  EXPECT_EQ(device.allocator.limit(), std::nullopt);
  device.Allocate(40 * kMiB);
}

TEST(Fraction, OneIsALimitUpTo29) {
  for (const VersionRules& rules : AllVersions()) {
    Device device(1000 * kMiB, "", rules.version);
    device.allocator.SetMemoryFraction(1.0);
    EXPECT_EQ(device.allocator.limit().has_value(), rules.version.minor <= 9) << rules.version.minor;
  }
}

TEST(Fraction, RejectionNeedsALimitThatWasRaisedAboveTheOption) {
  Device device(200 * kMiB, "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True");
  device.Allocate(40 * kMiB);
  EXPECT_EQ(device.Fail(70 * kMiB).reason, OutOfMemory::Reason::kNoMemory);
  device.allocator.SetMemoryFraction(1.0);
  const OutOfMemory failure = device.Fail(70 * kMiB + 5);
  EXPECT_EQ(failure.reason, OutOfMemory::Reason::kRejected);
  EXPECT_EQ(Message(failure, Rules().message, 0, {}),
            "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
            "per_process_memory_fraction limit. Requested size: 70.00 MiB");
  EXPECT_EQ(device.allocator.statistics().num_oom_rejections, 1);
  EXPECT_EQ(device.allocator.statistics().num_ooms, 1);
  EXPECT_EQ(device.retries(), 1) << "of the request before";
}

TEST(GarbageCollection, GivesBackWhatLayIdleForLongerThanAverage) {
  Device device(1000 * kMiB, "garbage_collection_threshold:0.5");
  const Allocation old = device.Allocate(100 * kMiB);
  const Allocation young = device.Allocate(120 * kMiB);
  device.allocator.Free(old.block);
  Allocation busy = device.Allocate(300 * kMiB);
  EXPECT_EQ(device.reserved(), 520 * kMiB) << "without a limit nothing is collected";
  device.allocator.SetMemoryFraction(0.86);
  for (int i = 0; i < 20; ++i) {
    device.allocator.Free(busy.block);
    busy = device.Allocate(300 * kMiB);
  }
  device.allocator.Free(young.block);
  device.Allocate(200 * kMiB);
  EXPECT_EQ(device.reserved(), 620 * kMiB) << "100 MiB are gone, the younger 120 are kept";
  EXPECT_EQ(device.retries(), 0);
}

TEST(LargeSegment, IsWhatTheLargePoolAsksFor) {
  Device device(1000 * kMiB, "large_segment_size_mb:64");
  device.Allocate(2 * kMiB);
  EXPECT_EQ(device.reserved(), 64 * kMiB);
  Device expandable(1000 * kMiB, "large_segment_size_mb:64,expandable_segments:True");
  expandable.Allocate(70 * kMiB);
  EXPECT_EQ(expandable.reserved(), 128 * kMiB) << "pages of that size";
}

TEST(Expandable, EmptyCacheGivesBackWholePagesOnly) {
  Device device(1000 * kMiB, "expandable_segments:True");
  const Allocation first = device.Allocate(30 * kMiB);
  const Allocation second = device.Allocate(30 * kMiB);
  device.allocator.Free(first.block);
  device.allocator.EmptyCache();
  EXPECT_EQ(device.reserved(), 40 * kMiB) << "the page from 20 to 40 MiB is partly in use";
  EXPECT_EQ(device.Allocate(5 * kMiB).address, first.address + 20 * kMiB);
  device.allocator.Free(second.block);
  EXPECT_EQ(device.allocator.statistics().all.segment.current, 0);
}

// Address space of a request that no range can hold: the next range lies behind it, or in its place.
TEST(Expandable, ARangeTooShortIsKeptUpTo214) {
  for (const PyTorchVersion version : {PyTorchVersion{2, 14}, PyTorchVersion{2, 15}}) {
    CardMemory card({.total = 100 * kMiB, .order = AddressOrder::kLowestFree});
    FinishedStreams events;
    CachingAllocator allocator(Parse("expandable_segments:True"), Rules(version), card, events);
    const Address first = std::get<Allocation>(allocator.Allocate(2 * kMiB)).address;
    EXPECT_TRUE(std::holds_alternative<OutOfMemory>(allocator.Allocate(Bytes{1} << 45)));
    const Bytes range = 120 * kMiB;  // an eighth more than the card, in pages of 20 MiB
    const Bytes before = version.minor == 14 ? 3 * range : range;
    EXPECT_EQ(std::get<Allocation>(allocator.Allocate(512)).address, first + before) << version.minor;
  }
}

TEST(Requests, OfNothingAndOfTooMuch) {
  Device device(64 * kMiB);
  EXPECT_EQ(device.Allocate(0).block, BlockId::kNone);
  EXPECT_EQ(device.Fail(Bytes{1} << 60).reason, OutOfMemory::Reason::kTooLarge);
  EXPECT_EQ(device.allocator.statistics().num_ooms, 0);
  EXPECT_FALSE(device.allocator.Free(BlockId::kNone));
  EXPECT_FALSE(device.allocator.RecordStream(BlockId{12345}, StreamId{1}));
  const Allocation block = device.Allocate(100);
  EXPECT_TRUE(device.allocator.Free(block.block));
  EXPECT_FALSE(device.allocator.Free(block.block)) << "freed twice";
}

}  // namespace
}  // namespace vramtrace::allocator
