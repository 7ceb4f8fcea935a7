#include <set>

#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

constexpr StreamId kOther{7};
constexpr StreamId kThird{9};

// Streams that are done when the test says so.
class SlowStreams final : public StreamEvents {
 public:
  EventId Record(StreamId stream) override {
    streams_.push_back(stream);
    return EventId{streams_.size() - 1};
  }
  bool Ready(EventId event) override { return done.contains(streams_[static_cast<std::size_t>(event)]); }
  void Synchronize(EventId) override { ++waits; }

  std::set<StreamId> done;
  int waits = 0;

 private:
  std::vector<StreamId> streams_;
};

struct SlowDevice {
  explicit SlowDevice(Bytes total, PyTorchVersion version = kNewest)
      : memory({.total = total}), allocator({}, Rules(version), memory, events) {}
  Allocation Allocate(Bytes bytes, StreamId stream = StreamId::kDefault) {
    return std::get<Allocation>(allocator.Allocate(bytes, stream));
  }
  CardMemory memory;
  SlowStreams events;
  CachingAllocator allocator;
};

TEST(Streams, DoNotShareCachedMemory) {
  Device device(1024 * kMiB);
  device.allocator.Free(device.Allocate(32 * kMiB).block);
  device.Allocate(32 * kMiB, kOther);
  EXPECT_EQ(device.reserved(), 64 * kMiB);
}

TEST(Streams, RecordedUseKeepsABlockActiveUntilAllStreamsAreDone) {
  SlowDevice device(1024 * kMiB);
  const Allocation block = device.Allocate(32 * kMiB);
  device.allocator.RecordStream(block.block, kOther);
  device.allocator.RecordStream(block.block, kOther);
  device.allocator.RecordStream(block.block, kThird);
  device.allocator.RecordStream(block.block, StreamId::kDefault);
  device.allocator.Free(block.block);
  const Statistics& statistics = device.allocator.statistics();
  EXPECT_EQ(statistics.all.allocated_bytes.current, 0);
  EXPECT_EQ(statistics.all.active_bytes.current, 32 * kMiB);
  EXPECT_EQ(device.allocator.Snapshot().at(0).blocks.at(0).state, BlockState::kPending);
  device.events.done = {kOther};
  EXPECT_NE(device.Allocate(32 * kMiB).address, block.address);
  EXPECT_EQ(statistics.all.active_bytes.current, 64 * kMiB);
  device.events.done = {kOther, kThird};
  EXPECT_EQ(device.Allocate(32 * kMiB).address, block.address) << "noticed at the next allocation";
}

TEST(Streams, ASlowStreamDoesNotHoldUpOthers) {
  SlowDevice device(1024 * kMiB);
  const Allocation slow = device.Allocate(32 * kMiB);
  const Allocation quick = device.Allocate(48 * kMiB);
  device.allocator.RecordStream(slow.block, kOther);
  device.allocator.RecordStream(quick.block, kThird);
  device.allocator.Free(slow.block);
  device.allocator.Free(quick.block);
  device.events.done = {kThird};
  EXPECT_EQ(device.Allocate(48 * kMiB).address, quick.address);
  EXPECT_EQ(device.allocator.statistics().all.active.current, 2);
}

TEST(Streams, AreWaitedForBeforeGivingUpButTheCacheIsNotSearchedAgain) {
  SlowDevice device(60 * kMiB);
  const Allocation block = device.Allocate(40 * kMiB);
  const Allocation other = device.Allocate(20 * kMiB);
  device.allocator.RecordStream(block.block, kOther);
  device.allocator.Free(block.block);
  EXPECT_EQ(device.Allocate(30 * kMiB).size, 30 * kMiB) << "the segment went back to the driver";
  EXPECT_EQ(device.events.waits, 1);
  EXPECT_EQ(device.allocator.statistics().num_sync_all_streams, 1);

  device.allocator.Free(other.block);
  const Allocation part = device.Allocate(12 * kMiB);
  const Allocation rest = device.Allocate(6 * kMiB);
  EXPECT_EQ(part.address, other.address);
  device.allocator.RecordStream(part.block, kOther);
  device.allocator.Free(part.block);
  const AllocationResult result = device.allocator.Allocate(12 * kMiB);
  ASSERT_TRUE(std::holds_alternative<OutOfMemory>(result))
      << "12 MiB are free after the wait, in a segment that is partly used";
  EXPECT_EQ(std::get<OutOfMemory>(result).free, 10 * kMiB);
  EXPECT_EQ(rest.address, other.address + 12 * kMiB);
}

TEST(Capture, DefersFreesOfBlocksThatOtherStreamsUse) {
  for (const PyTorchVersion version : {PyTorchVersion{2, 6}, kNewest}) {
    SlowDevice device(1024 * kMiB, version);
    const Allocation before = device.Allocate(32 * kMiB);
    const Allocation during = device.Allocate(48 * kMiB);
    device.allocator.RecordStream(before.block, kOther);
    device.allocator.BeginCapture();
    device.allocator.RecordStream(during.block, kThird);
    device.allocator.Free(before.block);
    device.allocator.Free(during.block);
    EXPECT_EQ(device.allocator.statistics().all.active.current, 2);
    device.allocator.EndCapture();
    const bool at_end = Rules(version).deferred_frees_at_capture_end;
    EXPECT_EQ(device.allocator.statistics().all.active.current, at_end ? 1 : 2)
        << "a stream recorded during the capture is done after it";
    EXPECT_EQ(device.Allocate(48 * kMiB).address, during.address);
    EXPECT_EQ(device.allocator.statistics().all.active.current, 2);
  }
}

}  // namespace
}  // namespace vramtrace::allocator
