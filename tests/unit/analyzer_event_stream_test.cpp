#include <gmock/gmock.h>

#include "analyzer/trace/event_stream.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::trace {
namespace {

using testing::TraceBuilder;
constexpr uint64_t kBase = TraceBuilder::kBaseAddress;

class EventStreamTest : public testing::FileTest {
 protected:
  std::vector<Event> ReadAll(const std::string& bytes) {
    const auto file = TraceFile::Open(Write(bytes));
    EXPECT_TRUE(file.ok()) << file.error().Sentence();
    file_ = file.value();
    EventStream stream(file_, EventStream::Counting::kCount);
    std::vector<Event> events;
    while (const Event* event = stream.Next()) events.push_back(*event);
    return events;
  }
  std::shared_ptr<TraceFile> file_;
};

TEST_F(EventStreamTest, DecodesEveryFieldOfABlock) {
  TraceBuilder builder;
  builder.Allocate({.address = kBase + 4096,
                    .bytes = 1024,
                    .requested = 1000,
                    .stack = 7,
                    .device = 3,
                    .autograd = {42, "Node", 9},
                    .allocated_total = 1024,
                    .reserved_total = 2048});
  std::vector<Event> events = ReadAll(builder.Bytes());
  std::erase_if(events, [](const Event& event) { return IsTable(event.kind); });
  ASSERT_EQ(events.size(), 1U);
  const Event& event = events.front();
  EXPECT_EQ(event.kind, PacketKind::kBlockAllocate);
  EXPECT_EQ(event.sequence, 1U);
  EXPECT_TRUE(event.has_sequence);
  EXPECT_EQ(event.address, kBase + 4096);
  EXPECT_EQ(event.bytes, 1024U);
  EXPECT_EQ(event.requested, 1000U);
  EXPECT_EQ(event.stack, StackId{7});
  EXPECT_EQ(event.device, DeviceIndex{3});
  EXPECT_EQ(event.autograd.sequence_number, 42U);
  EXPECT_EQ(event.autograd.operator_name, StringId{1});
  EXPECT_EQ(event.autograd.node_thread, 9U);
  EXPECT_TRUE(event.has_totals);
  EXPECT_EQ(event.reserved_total, 2048U);
}

TEST_F(EventStreamTest, AddressesBelowTheBaseAreNegativeDeltas) {
  TraceBuilder builder;
  builder.Allocate({.address = kBase - 512, .bytes = 512});
  EXPECT_EQ(ReadAll(builder.Bytes()).front().address, kBase - 512);
}

TEST_F(EventStreamTest, MergesThreadsBySequence) {
  TraceBuilder builder(4096);
  for (int i = 0; i < 1000; ++i) {
    builder.SetThread(static_cast<uint32_t>(1 + i % 3));
    builder.Allocate({.address = kBase + static_cast<uint64_t>(i) * 512, .bytes = 512});
  }
  const std::vector<Event> events = ReadAll(builder.Bytes());
  ASSERT_EQ(events.size(), 1000U);
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].sequence, i + 1);
    ASSERT_EQ(events[i].address, kBase + i * 512);
    ASSERT_EQ(events[i].thread, ThreadId{static_cast<uint32_t>(1 + i % 3)});
  }
  EXPECT_EQ(file_->statistics().Get(Statistic::kSequenceGap).count, 0U);
}

// A thread ended, and its half-full chunk went to the next one.
TEST_F(EventStreamTest, AThreadPacketInAChunkOfEventsSaysWhoseTheNextAre) {
  TraceBuilder builder;
  builder.SetThread(1);
  builder.Allocate({.address = kBase, .bytes = 512});
  builder.HandChunkOn(7);
  builder.Allocate({.address = kBase + 512, .bytes = 512});
  builder.Free({.address = kBase + 512});
  builder.HandChunkOn(300);
  builder.Allocate({.address = kBase + 512, .bytes = 512});
  std::vector<Event> events = ReadAll(builder.Bytes());
  std::erase_if(events, [](const Event& event) { return event.kind == PacketKind::kThread; });
  std::vector<uint32_t> threads;
  for (const Event& event : events) threads.push_back(static_cast<uint32_t>(event.thread));
  EXPECT_THAT(threads, ::testing::ElementsAre(1, 7, 7, 300));
  EXPECT_EQ(file_->chunks().size(), 1U);
  EXPECT_EQ(file_->statistics().Get(Statistic::kSequenceGap).count, 0U);
}

// In a chunk of tables the same packet defines a thread: it moves nobody's events.
TEST_F(EventStreamTest, AThreadPacketInATableChunkDefinesAThread) {
  TraceBuilder builder;
  v1::Packet packet;
  packet.mutable_thread()->set_id(9);
  packet.mutable_thread()->set_name("autograd");
  builder.Add(packet, true);
  builder.String("a packet behind it");
  builder.Allocate({.address = kBase, .bytes = 512});
  for (const Event& event : ReadAll(builder.Bytes())) {
    EXPECT_EQ(event.thread, event.kind == PacketKind::kBlockAllocate ? ThreadId{1} : ThreadId::kNone);
  }
}

TEST_F(EventStreamTest, ADamagedThreadPacketIsSkipped) {
  TraceBuilder builder;
  builder.Allocate({.address = kBase, .bytes = 512});
  v1::Packet packet;  // a body that ends inside its first field
  packet.GetReflection()->MutableUnknownFields(&packet)->AddLengthDelimited(29, std::string(1, '\x08'));
  builder.Add(packet, false);
  builder.Allocate({.address = kBase + 512, .bytes = 512});
  const std::vector<Event> events = ReadAll(builder.Bytes());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].thread, ThreadId{1});
  EXPECT_EQ(file_->statistics().Get(Statistic::kMalformedPacket).count, 1U);
}

TEST_F(EventStreamTest, MissingChunkIsCountedAsAGap) {
  TraceBuilder builder(4096);
  for (int i = 0; i < 1200; ++i)
    builder.Allocate({.address = kBase + static_cast<uint64_t>(i) * 512, .bytes = 512});
  std::string bytes = builder.Bytes();
  ASSERT_GE(bytes.size(), 3 * 4096U);
  for (size_t i = 4096; i < 2 * 4096; ++i) bytes[i] = '\0';  // the second chunk was never there
  const std::vector<Event> events = ReadAll(bytes);
  EXPECT_EQ(file_->statistics().Get(Statistic::kSequenceGap).count, 1200 - events.size());
  EXPECT_LT(events.size(), 1200U);
}

TEST_F(EventStreamTest, UnknownPacketsAndFieldsAreSkipped) {
  TraceBuilder builder;
  builder.Allocate({.address = kBase, .bytes = 512});
  v1::Packet unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(200, "later");
  builder.Add(unknown, false);
  v1::Packet extended;
  extended.mutable_block_free()->set_bytes(512);
  extended.mutable_block_free()
      ->GetReflection()
      ->MutableUnknownFields(extended.mutable_block_free())
      ->AddVarint(90, 1);
  builder.Add(extended, false);
  const std::vector<Event> events = ReadAll(builder.Bytes());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].kind, PacketKind::kBlockFree);
  EXPECT_EQ(events[1].bytes, 512U);
  EXPECT_EQ(file_->statistics().Get(Statistic::kUnknownPacket).count, 1U);
  EXPECT_EQ(file_->statistics().Get(Statistic::kSequenceGap).count, 0U);
}

TEST_F(EventStreamTest, FieldOfAnotherWireTypeIsSkipped) {
  TraceBuilder builder;
  v1::Packet packet;
  auto* body = packet.mutable_memory_query();
  body->GetReflection()->MutableUnknownFields(body)->AddLengthDelimited(2, "not a number");
  body->set_total_bytes(77);
  builder.Add(packet, false);
  const std::vector<Event> events = ReadAll(builder.Bytes());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].total_bytes, 77U);
  EXPECT_EQ(events[0].free_bytes, 0U);
}

// Every kind of driver event, against libprotobuf's own reading.
TEST_F(EventStreamTest, DecodesDriverEvents) {
  TraceBuilder builder;
  builder.DriverAllocate(kBase, 2 << 20, "libnccl.so.2", 2, v1::MEMORY_KIND_PHYSICAL);
  builder.Map(kBase + 4096, 2 << 20, 77);
  builder.Unmap(kBase + 4096, 2 << 20);
  builder.DriverFree(kBase, "libnccl.so.2", v1::MEMORY_KIND_PHYSICAL);
  builder.Query(100, 300, v1::MemoryQuery::REASON_STEP, 1);
  builder.HostAllocate(kBase, 64);
  builder.OutOfMemory({.bytes = 999, .stack = 5, .device = 1, .allocated_total = 7, .reserved_total = 8});
  std::vector<Event> events = ReadAll(builder.Bytes());
  std::erase_if(events, [](const Event& event) { return IsTable(event.kind); });
  ASSERT_EQ(events.size(), 7U);
  EXPECT_EQ(events[0].memory_kind, MemoryKind::kPhysical);
  EXPECT_EQ(events[0].result, 2U);
  EXPECT_NE(events[0].caller, StringId::kNone);
  EXPECT_EQ(events[1].handle, 77U);
  EXPECT_EQ(events[1].address, kBase + 4096);
  EXPECT_EQ(events[2].kind, PacketKind::kMemoryUnmap);
  EXPECT_EQ(events[3].memory_kind, MemoryKind::kPhysical);
  EXPECT_EQ(events[3].caller, events[0].caller);
  EXPECT_EQ(events[4].reason, QueryReason::kStep);
  EXPECT_EQ(events[4].free_bytes, 100U);
  EXPECT_EQ(events[5].bytes, 64U);
  EXPECT_EQ(events[6].requested, 999U);
  EXPECT_EQ(events[6].reserved_total, 8U);
  EXPECT_EQ(events[6].stack, StackId{5});
}

}  // namespace
}  // namespace vramtrace::trace
