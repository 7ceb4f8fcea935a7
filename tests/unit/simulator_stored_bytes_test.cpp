#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "preload/simulator/core/stored_bytes.h"

namespace vramtrace::simulator {
namespace {

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

Runs In(const StoredBytes& stored, uint64_t address, uint64_t bytes) {
  Runs runs;
  stored.ForEach(address, bytes, [&](uint64_t begin, uint64_t end) { runs.emplace_back(begin, end); });
  return runs;
}

constexpr uint64_t kBase = uint64_t{1} << 40;

TEST(StoredBytes, AreNoneAtFirst) {
  StoredBytes stored;
  EXPECT_THAT(In(stored, 0, ~uint64_t{0}), testing::IsEmpty());
  EXPECT_EQ(stored.stored_bytes(), 0u);
}

TEST(StoredBytes, AreWholeSectorsClippedToTheQuestion) {
  StoredBytes stored;
  stored.Mark(kBase + 100, 1);
  EXPECT_EQ(In(stored, kBase, 4096), (Runs{{kBase, kBase + 512}}));
  EXPECT_EQ(In(stored, kBase + 50, 100), (Runs{{kBase + 50, kBase + 150}}));
  EXPECT_THAT(In(stored, kBase + 512, 4096), testing::IsEmpty());
  EXPECT_EQ(stored.stored_bytes(), 512u);
}

TEST(StoredBytes, JoinNeighboursAcrossPieces) {
  StoredBytes stored;
  uint64_t border = kBase + (2u << 20);
  stored.Mark(border - 1024, 2048);
  EXPECT_EQ(In(stored, kBase, 4u << 20), (Runs{{border - 1024, border + 1024}}));
}

TEST(StoredBytes, KeepSectorsThatAreOnlyPartlyUnmarked) {
  StoredBytes stored;
  stored.Mark(kBase, 2048);
  stored.Unmark(kBase + 256, 1024);
  EXPECT_EQ(In(stored, kBase, 4096), (Runs{{kBase, kBase + 512}, {kBase + 1024, kBase + 2048}}));
  stored.Unmark(kBase, 1u << 30);
  EXPECT_EQ(stored.stored_bytes(), 0u);
}

TEST(StoredBytes, CountEachSectorOnce) {
  StoredBytes stored;
  stored.Mark(kBase, 1024);
  stored.Mark(kBase, 1024);
  EXPECT_EQ(stored.stored_bytes(), 1024u);
}

}  // namespace
}  // namespace vramtrace::simulator
