#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "preload/recorder/record/id_table.h"

namespace vramtrace::record {
namespace {

bool Put(IdTable* table, const Key& key, uint32_t id, MemoryBudget* budget) {
  if (!table->Reserve(budget)) return false;
  table->Put(key, id);
  return true;
}

Key KeyOf(uint64_t n) { return MakeKey(KeyKind::kStack, n); }

TEST(IdTable, FindsWhatWasPutAndNothingElse) {
  MemoryBudget budget;
  budget.SetLimit(64 << 20);
  IdTable table;
  EXPECT_EQ(table.Find(KeyOf(1)), 0U);
  for (uint32_t n = 1; n <= 50000; ++n) ASSERT_TRUE(Put(&table, KeyOf(n), n, &budget));
  EXPECT_EQ(table.Size(), 50000U);
  for (uint32_t n = 1; n <= 50000; ++n) ASSERT_EQ(table.Find(KeyOf(n)), n);
  for (uint32_t n = 50001; n <= 60000; ++n) ASSERT_EQ(table.Find(KeyOf(n)), 0U);
  ASSERT_TRUE(Put(&table, KeyOf(5), 99, &budget));
  EXPECT_EQ(table.Find(KeyOf(5)), 99U);
  EXPECT_EQ(table.Size(), 50000U);
}

TEST(IdTable, KeysThatShareASlotAreToldApart) {
  MemoryBudget budget;
  budget.SetLimit(64 << 20);
  IdTable table;
  for (uint64_t high = 1; high <= 300; ++high) {
    ASSERT_TRUE(Put(&table, {high, 7}, static_cast<uint32_t>(high), &budget));
  }
  for (uint64_t high = 1; high <= 300; ++high) ASSERT_EQ(table.Find({high, 7}), high);
  EXPECT_EQ(table.Find({301, 7}), 0U);
}

TEST(IdTable, StopsAtTheBudgetAndKeepsWhatItHas) {
  MemoryBudget budget;
  budget.SetLimit(200'000);
  IdTable table;
  uint32_t n = 0;
  while (Put(&table, KeyOf(n + 1), n + 1, &budget)) ++n;
  EXPECT_GT(n, 1000U);
  EXPECT_LE(budget.Used(), 200'000U);
  for (uint32_t known = 1; known <= n; ++known) ASSERT_EQ(table.Find(KeyOf(known)), known);
}

// Readers take no lock: what was put before they began they find, whatever grows meanwhile.
TEST(IdTable, ReadersSeeEverythingThatWasPutBefore) {
  MemoryBudget budget;
  budget.SetLimit(64 << 20);
  IdTable table;
  std::atomic<uint32_t> put{0};
  std::atomic<bool> wrong{false};
  std::thread reader([&] {
    for (uint32_t round = 0; put < 100'000; ++round) {
      const uint32_t known = put.load(std::memory_order_acquire);
      if (known == 0) continue;
      const uint32_t n = round * 2654435761U % known + 1;
      if (table.Find(KeyOf(n)) != n) wrong = true;
      const uint32_t ahead = table.Find(KeyOf(known + 1));
      if (ahead != 0 && ahead != known + 1) wrong = true;
    }
  });
  for (uint32_t n = 1; n <= 100'000; ++n) {
    ASSERT_TRUE(Put(&table, KeyOf(n), n, &budget));
    put.store(n, std::memory_order_release);
  }
  reader.join();
  EXPECT_FALSE(wrong);
}

TEST(Key, DependsOnEveryWordItsPlaceAndItsKind) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const auto add = [&seen](const Key& key) { return seen.insert({key.high, key.low}).second; };
  for (const KeyKind kind : {KeyKind::kText, KeyKind::kCode, KeyKind::kRawFrame, KeyKind::kStack}) {
    EXPECT_TRUE(add(MakeKey(kind, 0)));
    for (uint64_t word : {uint64_t{1}, uint64_t{2}, ~uint64_t{0}, uint64_t{1} << 63}) {
      EXPECT_TRUE(add(MakeKey(kind, word)));
      EXPECT_TRUE(add(MakeKey(kind, 0, word)));
      EXPECT_TRUE(add(MakeKey(kind, 0, 0, word)));
      EXPECT_TRUE(add(MakeKey(kind, 0, 0, 0, word)));
    }
  }
}

// Small integers, the words of (parent, frame), must not meet: a weak fold would show here.
TEST(Key, SmallPairsDoNotCollide) {
  std::set<uint64_t> high;
  std::set<uint64_t> low;
  size_t count = 0;
  for (uint64_t a = 0; a < 400; ++a) {
    for (uint64_t b = 0; b < 400; ++b, ++count) {
      const Key key = MakeKey(KeyKind::kStack, a, b);
      high.insert(key.high);
      low.insert(key.low);
    }
  }
  EXPECT_EQ(high.size(), count);
  EXPECT_EQ(low.size(), count);
}

TEST(Key, TextsAreToldApartByLengthAndContent) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    for (const std::string& variant : {text, text + "x", text + std::string(1, '\0')}) {
      const Key key = MakeTextKey(variant);
      EXPECT_NE(key.high, 0U);
      seen.insert({key.high, key.low});
    }
    text += "y";
  }
  EXPECT_EQ(seen.size(), 300U);
}

}  // namespace
}  // namespace vramtrace::record
