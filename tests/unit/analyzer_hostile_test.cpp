// Traces that were cut, changed or invented: no crash, no wrong silence.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "analyzer/report/build.h"
#include "analyzer/report/dump.h"
#include "analyzer/report/text.h"
#include "preload/trace/chunk.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::report {
namespace {

using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;

class HostileTest : public testing::FileTest {
 protected:
  static constexpr uint64_t kChunk = 4096;

  std::string Good() {
    TraceBuilder builder(kChunk);
    TrainingRun(TrainingOptions{.layers = 1, .steps = 1}).Play(&builder);
    return builder.Bytes();
  }
  static uint64_t CommittedOf(const std::string& bytes, size_t chunk) {
    uint64_t committed = 0;
    std::memcpy(&committed, bytes.data() + chunk * kChunk + offsetof(trace::ChunkHeader, committed),
                sizeof committed);
    return committed;
  }
  static std::string Key(const v1::Report& report) {
    std::string keys;
    for (const v1::Note& note : report.notes()) keys += note.key() + " ";
    return keys;
  }
};

// Cut at every byte: a prefix of the events is read, and where the cut shows, the report says so. The zeros
// behind a chunk's packets are all alike, so only some of them are tried.
TEST_F(HostileTest, FileCutAtEveryByteLoadsUpToThere) {
  const std::string good = Good();
  const std::string path = Write(good);
  const auto whole = BuildReport(path, {});
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE(whole.value().damaged);
  uint64_t events_after = whole.value().report.trace().events();
  size_t damaged = 0;
  for (size_t size = good.size(); size-- > 0;) {
    const size_t in_chunk = size % kChunk;
    const size_t used = sizeof(trace::ChunkHeader) + CommittedOf(good, size / kChunk);
    if (in_chunk > used && size % 97 != 0) continue;
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
    const auto built = BuildReport(path, {});
    if (!built.ok()) {
      EXPECT_FALSE(built.error().message.empty());
      events_after = 0;
      continue;
    }
    const v1::Report& report = built.value().report;
    EXPECT_LE(report.trace().events(), events_after) << size;
    events_after = report.trace().events();
    for (const v1::DeviceReport& device : report.devices()) {
      if (device.has_at_peak()) {
        EXPECT_EQ(device.at_peak().identity().mismatch(), 0) << size;
      }
    }
    const bool inside = in_chunk > 0 && in_chunk < used;
    EXPECT_EQ(built.value().damaged, inside) << size;
    EXPECT_EQ(Key(report).find("TruncatedFile") != std::string::npos, inside) << size;
    damaged += inside ? 1 : 0;
  }
  EXPECT_GT(damaged, 500U);
}

// Bits of the header of a chunk of tables and of one of events flipped, one at a time and every third:
// nothing crashes, what is read adds up, and a flip in what says whether and how far a chunk is used is
// noticed.
TEST_F(HostileTest, HeaderBitFlips) {
  const std::string good = Good();
  for (const size_t chunk : {size_t{0}, good.size() / kChunk - 1}) {
    for (size_t bit = 0; bit < sizeof(trace::ChunkHeader) * 8; bit += 3) {
      std::string bytes = good;
      bytes[chunk * kChunk + bit / 8] ^= static_cast<char>(1 << bit % 8);
      const std::string path = Write(bytes);
      const auto built = BuildReport(path, {});
      if (bit % 8 == 0) (void)DumpTrace(path, [](std::string_view) {});
      if (!built.ok()) {
        EXPECT_FALSE(built.error().message.empty());
        continue;
      }
      const v1::Report& report = built.value().report;
      for (const v1::DeviceReport& device : report.devices()) {
        EXPECT_EQ(device.at_peak().identity().mismatch(), 0) << chunk << " " << bit;
      }
      const size_t field = bit / 8;
      const bool magic = field < offsetof(trace::ChunkHeader, format_major);
      const bool committed =
          field >= offsetof(trace::ChunkHeader, committed) && field < offsetof(trace::ChunkHeader, flags);
      if (magic || committed) {
        EXPECT_FALSE(Key(report).empty()) << chunk << " " << bit;
      }
    }
  }
}

// Random bytes overwritten, in headers and packets. Nothing may crash, hang or throw; sanitizers watch.
TEST_F(HostileTest, ChangedBytesNeverCrash) {
  const std::string good = Good();
  std::mt19937 random(20261201);
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = good;
    const unsigned changes = 1 + random() % 8;
    for (unsigned i = 0; i < changes; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const std::string path = Write(bytes);
    const auto built = BuildReport(path, {});
    if (built.ok()) (void)ToText(built.value().report, {});
    (void)DumpTrace(path, [](std::string_view) {});
  }
}

// The committed packets replaced by noise of every first byte.
TEST_F(HostileTest, NoiseForPacketsNeverCrashes) {
  const std::string good = Good();
  std::mt19937 random(7);
  for (int first = 0; first < 256; ++first) {
    std::string bytes = good;
    for (size_t i = 128; i < kChunk; ++i) bytes[i] = static_cast<char>(random());
    bytes[128] = static_cast<char>(first);
    const auto built = BuildReport(Write(bytes), {});
    if (built.ok()) (void)ToText(built.value().report, {});
  }
}

}  // namespace
}  // namespace vramtrace::report
