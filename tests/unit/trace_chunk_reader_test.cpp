#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "preload/trace/chunk_reader.h"
#include "preload/trace/chunk_writer.h"
#include "tests/unit/trace_reading.h"

namespace vramtrace::trace {
namespace {

constexpr uint64_t kChunkBytes = 4096;

// A file of three chunks in memory: a sealed one, one that nobody opened, an open one.
class ThreeChunks : public testing::Test {
 protected:
  void SetUp() override {
    Fill(0, 10, true);
    Fill(2, 20, false);
  }

  void Fill(uint64_t index, uint32_t packets, bool seal) {
    ChunkWriter writer;
    // A chunk before the file is open is plain memory, which is what is wanted here.
    std::byte* const memory = MapUnfiledChunk(kChunkBytes);
    ASSERT_EQ(
        writer.Open({.bytes = memory, .index = index, .file = nullptr}, {.kind = ChunkKind::kEvents,
                                                                         .thread = 1,
                                                                         .process_id = 7,
                                                                         .chunk_bytes = kChunkBytes,
                                                                         .file_id = 99,
                                                                         .base_time_ns = 1000,
                                                                         .base_sequence = index * 1000,
                                                                         .base_address = 0x7f0000000000}),
        FileStatus::kOk);
    for (uint32_t i = 1; i <= packets; ++i) {
      std::byte buffer[kEventBufferBytes];
      const PacketStamp stamp = writer.Stamp(index * 1000 + i, 1000 + i);
      ASSERT_EQ(
          writer.Append(EncodePacket(stamp, BlockAllocatePacket{.address_delta = i, .bytes = 512}, buffer),
                        stamp),
          FileStatus::kOk);
    }
    if (seal) {
      ASSERT_EQ(writer.Seal(), FileStatus::kOk);
    }
    bytes_.resize(std::max<size_t>(bytes_.size(), (index + 1) * kChunkBytes));
    std::memcpy(bytes_.data() + index * kChunkBytes, memory, kChunkBytes);
    writer.Close();
  }

  [[nodiscard]] Chunk Read(uint64_t index) const {
    return ReadChunk(std::as_bytes(std::span(bytes_)).subspan(index * kChunkBytes), index);
  }

  std::string bytes_;
};

TEST_F(ThreeChunks, AreReadAsTheyWereWritten) {
  EXPECT_EQ(Read(0).state, ChunkState::kGood);
  EXPECT_TRUE(Read(0).fields.Sealed());
  EXPECT_EQ(Read(0).fields.file_id, 99U);
  EXPECT_EQ(Read(0).fields.last_time_ns, 1010U);
  EXPECT_EQ(Read(1).state, ChunkState::kUnused);
  EXPECT_EQ(Read(2).state, ChunkState::kGood);
  EXPECT_FALSE(Read(2).fields.Sealed());
}

// A file cut at any byte gives a prefix of its packets, chunk by chunk, and never one that was not written.
TEST_F(ThreeChunks, CutAtEveryByteGiveAPrefix) {
  const auto whole = tests::ReadTraceBytes(bytes_);
  ASSERT_THAT(whole.faults, testing::IsEmpty());
  ASSERT_EQ(whole.packets.size(), 30U);
  size_t before = 0;
  for (size_t size = 0; size <= bytes_.size(); ++size) {
    const auto cut = tests::ReadTraceBytes(bytes_.substr(0, size));
    ASSERT_THAT(cut.faults, testing::IsEmpty()) << size;
    ASSERT_GE(cut.packets.size(), before) << size;
    before = cut.packets.size();
    for (size_t i = 0; i < cut.packets.size(); ++i) {
      ASSERT_EQ(cut.packets[i].packet.SerializeAsString(), whole.packets[i].packet.SerializeAsString())
          << size;
      ASSERT_EQ(cut.packets[i].sequence, whole.packets[i].sequence) << size;
    }
  }
  EXPECT_EQ(before, whole.packets.size());
}

TEST_F(ThreeChunks, AnyChangedByteOfASealedChunkIsFound) {
  const size_t committed = Read(0).fields.committed;
  for (size_t at = sizeof(ChunkHeader); at < sizeof(ChunkHeader) + committed; ++at) {
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x10);
    EXPECT_EQ(Read(0).state, ChunkState::kBadChecksum) << at;
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x10);
  }
}

TEST_F(ThreeChunks, HeadersThatLieAreRefused) {
  const auto with = [this](size_t offset, uint64_t value, size_t size) {
    std::string changed = bytes_;
    std::memcpy(changed.data() + offset, &value, size);
    return ReadChunk(std::as_bytes(std::span(changed)), 0).state;
  };
  EXPECT_EQ(with(offsetof(ChunkHeader, magic), 1, 8), ChunkState::kBadMagic);
  EXPECT_EQ(with(offsetof(ChunkHeader, magic), 0, 8), ChunkState::kUnused);
  EXPECT_EQ(with(offsetof(ChunkHeader, format_major), kFormatMajor + 1, 4), ChunkState::kNewerMajor);
  EXPECT_EQ(with(offsetof(ChunkHeader, format_minor), 999, 4), ChunkState::kGood);
  EXPECT_EQ(with(offsetof(ChunkHeader, header_bytes), 0, 4), ChunkState::kBadGeometry);
  EXPECT_EQ(with(offsetof(ChunkHeader, header_bytes), UINT32_MAX, 4), ChunkState::kBadGeometry);
  EXPECT_EQ(with(offsetof(ChunkHeader, chunk_bytes), 0, 8), ChunkState::kBadGeometry);
  EXPECT_EQ(with(offsetof(ChunkHeader, chunk_bytes), UINT64_MAX, 8), ChunkState::kBadGeometry);
  EXPECT_EQ(with(offsetof(ChunkHeader, index), 5, 8), ChunkState::kBadGeometry);
  EXPECT_EQ(with(offsetof(ChunkHeader, committed), UINT64_MAX, 8), ChunkState::kBadGeometry);
  EXPECT_EQ(with(offsetof(ChunkHeader, committed), kChunkBytes, 8), ChunkState::kBadGeometry);
}

// A later minor version may have a longer header.
TEST_F(ThreeChunks, ALongerHeaderIsSkipped) {
  constexpr uint32_t kMore = 64;
  std::string longer = bytes_.substr(0, kChunkBytes);
  longer.insert(sizeof(ChunkHeader), std::string(kMore, '\x55'));
  longer.resize(kChunkBytes);
  const uint32_t header_bytes = sizeof(ChunkHeader) + kMore;
  std::memcpy(longer.data() + offsetof(ChunkHeader, header_bytes), &header_bytes, sizeof(header_bytes));
  const auto trace = tests::ReadTraceBytes(longer);
  EXPECT_THAT(trace.faults, testing::IsEmpty());
  EXPECT_EQ(trace.packets.size(), 10U);
}

TEST(PacketCursor, StopsAtWhatIsNoPacket) {
  const auto walk = [](std::string bytes) {
    PacketCursor cursor(std::as_bytes(std::span(bytes.data(), bytes.size())));
    std::span<const std::byte> packet;
    int count = 0;
    while (cursor.Next(&packet)) ++count;
    return std::pair(count, cursor.Torn());
  };
  using namespace std::string_literals;
  EXPECT_EQ(walk(""), std::pair(0, false));
  EXPECT_EQ(walk("\x01x"), std::pair(1, false));
  EXPECT_EQ(walk("\x01x\x00\x00"s), std::pair(1, true)) << "zeros are no packet";
  EXPECT_EQ(walk("\x01x\x02y"), std::pair(1, true)) << "runs over the end";
  EXPECT_EQ(walk("\x80"), std::pair(0, true)) << "half a length";
  EXPECT_EQ(walk("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01z"), std::pair(0, true))
      << "a length without bounds";
}

}  // namespace
}  // namespace vramtrace::trace
