#include <gmock/gmock.h>

#include <cstring>

#include "analyzer/trace/trace_file.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::trace {
namespace {

using ::testing::HasSubstr;
using testing::TraceBuilder;

class TraceFileTest : public testing::FileTest {
 protected:
  std::string Good() {
    TraceBuilder builder(16 * 1024);
    builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 512});
    return builder.Bytes();
  }
  // The error of opening `bytes`.
  Error ErrorOf(const std::string& bytes) {
    const auto file = TraceFile::Open(Write(bytes));
    EXPECT_FALSE(file.ok());
    return file.ok() ? Error{} : file.error();
  }
};

template <typename T>
void Patch(std::string* bytes, size_t offset, T value) {
  std::memcpy(bytes->data() + offset, &value, sizeof value);
}

TEST_F(TraceFileTest, ReadsWhatWasWritten) {
  const auto file = TraceFile::Open(Write(Good()));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file.value()->chunks().size(), 1U);
  EXPECT_FALSE(file.value()->statistics().Damaged());
}

TEST_F(TraceFileTest, MissingFileIsNamedWithTheReason) {
  const auto file = TraceFile::Open((folder_ / "none.vtrace").string());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().Sentence(), HasSubstr("none.vtrace"));
  EXPECT_THAT(file.error().Sentence(), HasSubstr("No such file"));
}

TEST_F(TraceFileTest, FolderIsSaidToBeOne) {
  const auto file = TraceFile::Open(folder_.string());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().Sentence(), HasSubstr("is a folder"));
}

TEST_F(TraceFileTest, EmptyFileSaysWhatWasExpected) {
  const Error error = ErrorOf("");
  EXPECT_EQ(error.offset, 0U);
  EXPECT_THAT(error.message, HasSubstr("empty"));
  EXPECT_THAT(error.message, HasSubstr("VRTCHNK1"));
}

TEST_F(TraceFileTest, OtherFileSaysWhatWasExpectedAndWhere) {
  const Error error = ErrorOf(
      "\x7f"
      "ELF and more than a header's worth of bytes" +
      std::string(500, 'x'));
  EXPECT_EQ(error.offset, 0U);
  EXPECT_THAT(error.message, HasSubstr("not a vramtrace trace"));
}

TEST_F(TraceFileTest, CutInsideTheFirstHeaderNamesTheOffset) {
  const Error error = ErrorOf(Good().substr(0, 100));
  EXPECT_EQ(error.offset, 100U);
  EXPECT_THAT(error.message, HasSubstr("first header"));
}

TEST_F(TraceFileTest, NewerMajorIsRefusedNamingBothVersions) {
  std::string bytes = Good();
  Patch<uint32_t>(&bytes, offsetof(ChunkHeader, format_major), 7);
  Patch<uint32_t>(&bytes, offsetof(ChunkHeader, format_minor), 3);
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.offset, offsetof(ChunkHeader, format_major));
  EXPECT_THAT(error.message, HasSubstr("7.3"));
  EXPECT_THAT(error.message, HasSubstr("1.x"));
}

TEST_F(TraceFileTest, ImpossibleChunkSizeIsRefused) {
  std::string bytes = Good();
  Patch<uint64_t>(&bytes, offsetof(ChunkHeader, chunk_bytes), uint64_t{1} << 60);
  EXPECT_THAT(ErrorOf(bytes).message, HasSubstr("expected 4096"));
}

TEST_F(TraceFileTest, SealedChunkThatWasChangedIsReportedWithItsOffset) {
  TraceBuilder builder(16 * 1024);
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 512});
  builder.SealChunks();
  std::string bytes = builder.Bytes();
  bytes[sizeof(ChunkHeader) + 3] ^= 0x10;
  const auto file = TraceFile::Open(Write(bytes));
  ASSERT_TRUE(file.ok());
  const auto& counter = file.value()->statistics().Get(Statistic::kChecksumMismatch);
  EXPECT_EQ(counter.count, 1U);
  EXPECT_EQ(counter.first_offset, 0U);
  EXPECT_TRUE(file.value()->statistics().Damaged());
}

TEST_F(TraceFileTest, ForeignAndBrokenChunksAreSkippedAndCounted) {
  std::string bytes = Good();
  std::string foreign = bytes;
  Patch<uint64_t>(&foreign, offsetof(ChunkHeader, index), 1);
  Patch<uint64_t>(&foreign, offsetof(ChunkHeader, file_id), 99);
  std::string broken(bytes.size(), '\x55');
  const std::string unused(bytes.size(), '\0');
  const auto file = TraceFile::Open(Write(bytes + foreign + broken + unused));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value()->chunks().size(), 1U);
  EXPECT_EQ(file.value()->statistics().Get(Statistic::kForeignChunk).count, 1U);
  EXPECT_EQ(file.value()->statistics().Get(Statistic::kBadChunkHeader).count, 1U);
  EXPECT_EQ(file.value()->statistics().Get(Statistic::kBadChunkHeader).first_offset, 2 * bytes.size());
}

}  // namespace
}  // namespace vramtrace::trace
