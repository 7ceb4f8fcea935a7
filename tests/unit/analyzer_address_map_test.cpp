#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "analyzer/timeline/address_map.h"

namespace vramtrace::timeline {
namespace {

TEST(AddressMap, FindsNothingWhenEmpty) {
  AddressMap<int> map;
  EXPECT_EQ(map.Find(0), nullptr);
}

TEST(AddressMap, ReplacesAtTheSameAddress) {
  AddressMap<int> map;
  map.Insert(512, 1);
  map.Insert(512, 2);
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(*map.Find(512), 2);
}

// Against std::unordered_map over many random operations: gaps closed by Erase are where such a map goes
// wrong.
TEST(AddressMap, AgreesWithTheStandardMap) {
  std::mt19937_64 random(20261201);
  AddressMap<uint64_t> map;
  std::unordered_map<uint64_t, uint64_t> truth;
  for (uint64_t i = 0; i < 300'000; ++i) {
    const uint64_t address = (random() % 700) * 512;
    if (random() % 2 == 0) {
      map.Insert(address, i);
      truth[address] = i;
    } else if (uint64_t* value = map.Find(address); value != nullptr) {
      ASSERT_EQ(*value, truth.at(address));
      map.Erase(value);
      truth.erase(address);
    } else {
      ASSERT_FALSE(truth.contains(address));
    }
    ASSERT_EQ(map.size(), truth.size());
  }
  size_t seen = 0;
  map.ForEach([&](uint64_t address, uint64_t value) {
    ++seen;
    EXPECT_EQ(truth.at(address), value);
  });
  EXPECT_EQ(seen, truth.size());
}

}  // namespace
}  // namespace vramtrace::timeline
