#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/gpus/select.h"

namespace vramtrace::gpus {
namespace {

TEST(Select, WithoutWishesIsTheCatalogue) {
  const auto cards = Select({}, BuiltinPrices());
  ASSERT_EQ(cards.size(), catalogue::Gpus().size());
  for (size_t at = 0; at < cards.size(); ++at) EXPECT_EQ(cards[at], &catalogue::Gpus()[at]);
}

TEST(Select, Filters) {
  Selection selection;
  selection.least_memory_bytes = uint64_t{40} << 30;
  for (const catalogue::Gpu* gpu : Select(selection, BuiltinPrices())) {
    EXPECT_GE(catalogue::TotalsOf(*gpu)->cuda_bytes, selection.least_memory_bytes);
  }
  selection = {};
  selection.architecture = "hopper";
  EXPECT_EQ(Select(selection, BuiltinPrices()).size(), 8u);
  selection = {};
  selection.most_per_hour = 0.4;
  for (const catalogue::Gpu* gpu : Select(selection, BuiltinPrices())) {
    EXPECT_LE(CheapestHour(*gpu, BuiltinPrices(), "USD"), 0.4) << gpu->id;
    EXPECT_GT(CheapestHour(*gpu, BuiltinPrices(), "USD"), 0) << gpu->id;
  }
  selection = {};
  selection.least_bandwidth_gb_per_s = 1e9;
  EXPECT_TRUE(Select(selection, BuiltinPrices()).empty());
}

TEST(Select, EveryOrderSortsAndLosesNothing) {
  const auto names = SortNames();
  ASSERT_GE(names.size(), 8u);
  const auto first = [](const std::string& sort) {
    Selection selection;
    selection.sort = sort;
    const auto cards = Select(selection, BuiltinPrices());
    EXPECT_EQ(cards.size(), catalogue::Gpus().size()) << sort;
    return std::string(cards.front()->id);
  };
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"catalogue", "p100-16"}, {"memory", "gb300"}, {"bandwidth", "b100"}, {"bf16", "gb200"},
      {"fp32", "rtxpro6000"},   {"power", "a16"},    {"price", "rtx3090"},  {"memory-per-price", "rtx3090"}};
  ASSERT_EQ(expected.size(), names.size()) << "an order has no case";
  for (const auto& [sort, card] : expected) {
    EXPECT_NE(std::find(names.begin(), names.end(), sort), names.end()) << sort;
    EXPECT_EQ(first(sort), card) << sort;
  }
}

}  // namespace
}  // namespace vramtrace::gpus
