// What must hold after every operation, whatever the requests: random ones under many settings.
#include <random>

#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

void CheckSnapshot(const CachingAllocator& allocator) {
  Bytes reserved = 0;
  Bytes allocated = 0;
  Bytes active = 0;
  Address previous_end = 0;
  for (const SegmentView& segment : allocator.Snapshot()) {
    ASSERT_GE(segment.address, previous_end) << "segments overlap";
    previous_end = segment.address + segment.size;
    reserved += segment.size;
    Address next = segment.address;
    BlockState before = BlockState::kAllocated;
    for (const BlockView& block : segment.blocks) {
      ASSERT_EQ(block.address, next) << "blocks leave a gap";
      ASSERT_FALSE(before == BlockState::kFree && block.state == BlockState::kFree)
          << "free neighbours not merged";
      before = block.state;
      next += block.size;
      if (block.state == BlockState::kAllocated) allocated += block.size;
      if (block.state != BlockState::kFree) active += block.size;
    }
    ASSERT_EQ(next, previous_end);
  }
  const PoolStatistics& all = allocator.statistics().all;
  ASSERT_EQ(static_cast<Bytes>(all.reserved_bytes.current), reserved);
  ASSERT_EQ(allocator.held(), reserved);
  ASSERT_EQ(static_cast<Bytes>(all.allocated_bytes.current), allocated);
  ASSERT_EQ(static_cast<Bytes>(all.active_bytes.current), active);
  ASSERT_LE(all.requested_bytes.current, all.active_bytes.current);
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint64_t Below(std::uint64_t limit) { return engine_() % limit; }
  // Sizes around every border of the size classes.
  Bytes Size() {
    constexpr Bytes kScales[] = {512, 4096, 1 * kMiB, 2 * kMiB, 10 * kMiB, 20 * kMiB, 70 * kMiB};
    return 1 + Below(kScales[Below(std::size(kScales))] * 2);
  }

 private:
  std::mt19937_64 engine_;
};

class Invariants : public testing::TestWithParam<const char*> {};

TEST_P(Invariants, HoldAfterEveryOperation) {
  for (const PyTorchVersion version : {PyTorchVersion{2, 15}, PyTorchVersion{2, 11}}) {
    Random random(version.minor);
    Device device(400 * kMiB, GetParam(), version);
    device.allocator.SetMemoryFraction(0.9);
    const PoolId pool = device.allocator.CreatePool({});
    std::vector<BlockId> live;
    int failures = 0;
    for (int i = 0; i < 6000; ++i) {
      const std::uint64_t kind = random.Below(100);
      if (kind < 52 || live.empty()) {
        const AllocationResult result = device.allocator.Allocate(
            random.Size(), StreamId{random.Below(2)}, random.Below(10) == 0 ? pool : PoolId::kDefault);
        if (const auto* allocation = std::get_if<Allocation>(&result)) live.push_back(allocation->block);
        failures += std::holds_alternative<OutOfMemory>(result);
      } else if (kind < 99) {
        const std::size_t chosen = random.Below(live.size());
        if (kind < 60) device.allocator.RecordStream(live[chosen], StreamId{5});
        ASSERT_TRUE(device.allocator.Free(live[chosen]));
        live[chosen] = live.back();
        live.pop_back();
      } else {
        device.allocator.EmptyCache();
      }
      if (i % 7 == 0) CheckSnapshot(device.allocator);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(failures, 10) << "the capacity was never reached";
    for (const BlockId block : live) device.allocator.Free(block);
    device.allocator.ReleasePool(pool);
    device.allocator.EmptyCache();
    EXPECT_EQ(device.allocator.statistics().all.reserved_bytes.current, 0);
    EXPECT_EQ(device.allocator.statistics().all.inactive_split.current, 0);
    EXPECT_EQ(device.allocator.statistics().all.inactive_split_bytes.current, 0);
    EXPECT_EQ(device.memory.Info().free, 400 * kMiB);
    EXPECT_TRUE(device.allocator.Snapshot().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Options, Invariants,
                         testing::Values("", "max_split_size_mb:32", "expandable_segments:True",
                                         "garbage_collection_threshold:0.6", "roundup_power2_divisions:4",
                                         "expandable_segments:True,max_split_size_mb:40",
                                         "expandable_segments:True,garbage_collection_threshold:0.5",
                                         "large_segment_size_mb:32,max_split_size_mb:32"));

}  // namespace
}  // namespace vramtrace::allocator
