#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analyzer/gpus/prices.h"

namespace vramtrace::gpus {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "gpu_id,memory_gb,currency,per_hour_low,per_hour_high,market,date,source\n";

TEST(Prices, EveryBuiltinOfferIsWholeAndDated) {
  const PriceTable table = BuiltinPrices();
  ASSERT_GT(table.offers.size(), 30u);
  for (const Offer& offer : table.offers) {
    EXPECT_TRUE(offer.currency == "CNY" || offer.currency == "USD") << offer.market;
    EXPECT_GT(offer.per_hour_low, 0) << offer.gpu_id;
    EXPECT_GE(offer.per_hour_high, offer.per_hour_low) << offer.gpu_id;
    EXPECT_FALSE(offer.date.empty()) << offer.gpu_id;
    EXPECT_FALSE(offer.source.empty()) << offer.gpu_id;
    EXPECT_TRUE(offer.gpu_id.empty() || catalogue::FindGpu(offer.gpu_id) != nullptr) << offer.gpu_id;
  }
}

TEST(Prices, ACardsOwnOffersComeBeforeThoseOfItsSize) {
  const PriceTable table = BuiltinPrices();
  for (const Offer* offer : table.For(*catalogue::FindGpu("rtx4090"))) EXPECT_EQ(offer->gpu_id, "rtx4090");
  const auto by_size = table.For(*catalogue::FindGpu("a30"));
  ASSERT_FALSE(by_size.empty()) << "24 GB has a band of its own";
  for (const Offer* offer : by_size) EXPECT_TRUE(offer->gpu_id.empty());
}

TEST(Prices, ReadsAUsersFile) {
  const auto table = ParsePrices(
      "per_month,gpu_id,memory_gb,currency,per_hour_low,per_hour_high,market,date,source\r\n"
      "900,RTX 4090,24,CNY,1.5,2.5,\"a, market\",2026-11,me\r\n"
      "\n"
      ",l4,,USD,0.4,,b,2026,me\n",
      "my.csv");
  ASSERT_TRUE(table.ok()) << table.error().Sentence();
  ASSERT_EQ(table.value().offers.size(), 2u);
  EXPECT_EQ(table.value().offers[0].gpu_id, "rtx4090");
  EXPECT_EQ(table.value().offers[0].market, "a, market");
  EXPECT_EQ(table.value().offers[0].per_month, 900);
  EXPECT_EQ(table.value().offers[0].PerHour(), 2.0);
  EXPECT_EQ(table.value().offers[1].per_hour_high, 0.4);
}

TEST(Prices, SaysWhichLineAndColumnIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"rtx4900,24,CNY,1,2,m,2026,s\n", "line 2, column gpu_id: 'rtx4900'"},
      {",,CNY,1,2,m,2026,s\n", "column memory_gb"},
      {",-5,CNY,1,2,m,2026,s\n", "column memory_gb"},
      {"l4,24,EUR,1,2,m,2026,s\n", "column currency: 'EUR'"},
      {"l4,24,CNY,-1,2,m,2026,s\n", "column per_hour_low: '-1'"},
      {"l4,24,CNY,nan,2,m,2026,s\n", "column per_hour_low"},
      {"l4,24,CNY,1e300,1e300,m,2026,s\n", "column per_hour_low"},
      {"l4,24,CNY,3,2,m,2026,s\n", "column per_hour_high"},
      {"l4,24,CNY,3,4,m,,s\n", "column date"},
      {"\n\nl4,24,CNY,x,4,m,2026,s\n", "line 4, column per_hour_low"},
  };
  for (const auto& [line, says] : wrong) {
    const auto table = ParsePrices(std::string(kHeader) + line, "my.csv");
    ASSERT_FALSE(table.ok()) << line;
    EXPECT_THAT(table.error().Sentence(), HasSubstr(says));
    EXPECT_THAT(table.error().Sentence(), HasSubstr("my.csv"));
  }
}

TEST(Prices, RefusesFilesThatAreNone) {
  EXPECT_THAT(ParsePrices("", "e.csv").error().message, HasSubstr("no price"));
  EXPECT_THAT(ParsePrices(kHeader, "e.csv").error().message, HasSubstr("no price"));
  EXPECT_THAT(ParsePrices("a,b\n1,2\n", "e.csv").error().message, HasSubstr("no column 'gpu_id'"));
  EXPECT_THAT(ParsePrices(std::string(1000, '\0'), "e.csv").error().message, HasSubstr("no column"));
  EXPECT_THAT(LoadPrices("/no/such.csv").error().Sentence(), HasSubstr("/no/such.csv"));
  EXPECT_FALSE(LoadPrices("/").ok());
  EXPECT_EQ(LoadPrices("builtin").value().offers.size(), BuiltinPrices().offers.size());
}

}  // namespace
}  // namespace vramtrace::gpus
