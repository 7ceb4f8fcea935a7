// What is left of a range of events.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "preload/recorder/record/net_effect.h"
#include "preload/trace/encoder.h"
#include "preload/trace/fields.h"

namespace vramtrace::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Events as a chunk holds them.
class Range {
 public:
  ~Range() { effect_.Clear(); }

  // Answers the event's number.
  template <typename Packet>
  uint64_t Add(const Packet& packet, uint64_t address = 0, uint32_t address_field = 0) {
    std::vector<std::byte>& room = bytes_.emplace_back(trace::kEventBufferBytes);
    const auto encoded = trace::EncodePacket({1, 1}, packet, room);
    const trace::PacketParts parts = trace::SplitPacket(encoded.subspan(1));  // all are shorter than 128
    EXPECT_LT(encoded.size(), 129U);
    EXPECT_TRUE(effect_.Add(EventView{.sequence = ++count_,
                                      .time_ns = count_,
                                      .thread = 1,
                                      .number = parts.number,
                                      .body = parts.body,
                                      .address = address,
                                      .address_field = address_field}));
    return count_;
  }
  uint64_t Allocate(uint64_t address, uint32_t device = 0) {
    return Add(trace::BlockAllocatePacket{.bytes = 512, .device = device}, address, 1);
  }
  uint64_t Free(uint64_t address, uint32_t device = 0) {
    return Add(trace::BlockFreePacket{.bytes = 512, .device = device}, address, 1);
  }
  uint64_t Label(uint64_t address, uint32_t name) {
    return Add(trace::LabelPacket{.bytes = 512, .kind = 1, .name = name}, address, 1);
  }
  std::vector<uint64_t> Left() {
    std::vector<uint64_t> left;
    effect_.ForEachLeft([&left](const EventView& event) { left.push_back(event.sequence); });
    EXPECT_EQ(left.size() + effect_.Cancelled(), count_) << "every event is left or counted";
    return left;
  }

 private:
  NetEffect effect_;
  std::deque<std::vector<std::byte>> bytes_;
  uint64_t count_ = 0;
};

TEST(NetEffect, AnAllocationAndItsFreeCancelOut) {
  Range range;
  range.Allocate(0x1000);
  range.Free(0x1000);
  EXPECT_THAT(range.Left(), IsEmpty());
}

TEST(NetEffect, WhatLivesAndWhatOldBlocksAreFreedStays) {
  Range range;
  const uint64_t old = range.Free(0x1000);
  range.Allocate(0x1000);
  range.Free(0x1000);
  const uint64_t lives = range.Allocate(0x1000);
  EXPECT_THAT(range.Left(), ElementsAre(old, lives));
}

TEST(NetEffect, DevicesHaveAddressesOfTheirOwn) {
  Range range;
  const uint64_t first = range.Allocate(0x1000, 0);
  range.Allocate(0x1000, 1);
  range.Free(0x1000, 1);
  EXPECT_THAT(range.Left(), ElementsAre(first));
}

TEST(NetEffect, ARefusedCallHasNoEffect) {
  Range range;
  range.Add(trace::DriverAllocatePacket{.bytes = 1, .result = 2}, 0, 1);
  const uint64_t real = range.Add(trace::DriverAllocatePacket{.bytes = 1}, 0x2000, 1);
  range.Add(trace::DriverFreePacket{.result = 1}, 0x2000, 1);
  EXPECT_THAT(range.Left(), ElementsAre(real));
}

TEST(NetEffect, AHandleIsNoAddress) {
  Range range;
  const uint64_t handle = range.Add(trace::DriverAllocatePacket{.bytes = 1, .kind = 3}, 0x2000, 1);
  range.Add(trace::DriverAllocatePacket{.bytes = 1}, 0x2000, 1);
  range.Add(trace::DriverFreePacket{}, 0x2000, 1);
  EXPECT_THAT(range.Left(), ElementsAre(handle));
}

TEST(NetEffect, MappingsGoWithTheirOwnUnmapOnly) {
  Range range;
  range.Add(trace::MemoryMapPacket{.bytes = 4096, .handle = 1}, 0x10000, 1);
  range.Add(trace::MemoryUnmapPacket{.bytes = 4096}, 0x10000, 1);
  const uint64_t first = range.Add(trace::MemoryMapPacket{.bytes = 4096, .handle = 1}, 0x10000, 1);
  const uint64_t second = range.Add(trace::MemoryMapPacket{.bytes = 4096, .handle = 2}, 0x11000, 1);
  const uint64_t both = range.Add(trace::MemoryUnmapPacket{.bytes = 8192}, 0x10000, 1);
  EXPECT_THAT(range.Left(), ElementsAre(first, second, both));
}

TEST(NetEffect, LabelsLiveAsLongAsTheirBlock) {
  Range range;
  range.Allocate(0x1000);
  range.Label(0x1000, 1);
  range.Label(0x1000, 2);
  range.Free(0x1000);
  const uint64_t block = range.Allocate(0x1000);
  range.Label(0x1000, 3);
  const uint64_t tied = range.Label(0x1000, 4);
  const uint64_t again = range.Label(0x1000, 3);
  EXPECT_THAT(range.Left(), ElementsAre(block, tied, again));
}

TEST(NetEffect, TheNewestAnswerOfADeviceAndTheLastStepStay) {
  Range range;
  const uint64_t context = range.Add(trace::MemoryQueryPacket{.device = 1, .reason = 1});
  range.Add(trace::MemoryQueryPacket{.device = 1, .free_bytes = 5});
  const uint64_t other = range.Add(trace::MemoryQueryPacket{.device = 2, .free_bytes = 5});
  const uint64_t newest = range.Add(trace::MemoryQueryPacket{.device = 1, .free_bytes = 6});
  range.Add(trace::StepPacket{.number = 4, .edge = 0});
  range.Add(trace::StepPacket{.number = 4, .edge = 1});
  range.Add(trace::StepPacket{.number = 5, .edge = 0});
  const uint64_t end = range.Add(trace::StepPacket{.number = 5, .edge = 1});
  EXPECT_THAT(range.Left(), ElementsAre(context, other, newest, end));
}

TEST(NetEffect, APhaseThatBeganAndEndedIsOver) {
  Range range;
  const uint64_t outer = range.Add(trace::PhaseMarkPacket{.name = 1});
  range.Add(trace::PhaseMarkPacket{.name = 2});
  range.Add(trace::PhaseMarkPacket{.name = 2, .end = true});
  const uint64_t older = range.Add(trace::PhaseMarkPacket{.name = 3, .end = true});
  EXPECT_THAT(range.Left(), ElementsAre(outer, older));
}

// Far beyond where the records are squeezed together.
TEST(NetEffect, LongRangesCostNoMoreThanWhatIsAlive) {
  Range range;
  std::vector<uint64_t> lasting;
  for (uint64_t i = 0; i < 200'000; ++i) {
    range.Allocate(0x1000 + i % 64 * 512);
    if (i % 20'000 == 0) {
      lasting.push_back(range.Allocate(0x100000 + i * 512));
      lasting.push_back(range.Label(0x100000 + i * 512, 1));
    }
    range.Free(0x1000 + i % 64 * 512);
  }
  EXPECT_EQ(range.Left(), lasting);
}

}  // namespace
}  // namespace vramtrace::record
