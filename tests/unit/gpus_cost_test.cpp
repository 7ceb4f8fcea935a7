#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "analyzer/gpus/cost.h"

namespace vramtrace::gpus {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

constexpr uint64_t kGiB = 1u << 30;

Need Needs(uint64_t gibibytes, int cards = 1) {
  return {cards, "", {gibibytes * kGiB, gibibytes * kGiB, gibibytes * kGiB}, true};
}

PriceTable Table(const std::string& rows) {
  auto table = ParsePrices(
      "gpu_id,memory_gb,currency,per_hour_low,per_hour_high,market,date,source,per_month\n" + rows, "t.csv");
  EXPECT_TRUE(table.ok());
  return std::move(table.value());
}

const CardRow& Row(const CardTable& table, std::string_view gpu, int cards = 1) {
  for (const CardRow& row : table.rows) {
    if (row.gpu->id == gpu && row.cards == cards) return row;
  }
  ADD_FAILURE() << gpu << " has no row";
  return table.rows.front();
}

CostOptions Hours(double hours) {
  CostOptions options;
  options.hours = hours;
  return options;
}

TEST(Cards, FitsMeansThatTheUpperEndFits) {
  const Need need = {1, "", {20 * kGiB, 23 * kGiB, 24 * kGiB}, true};
  const CardTable table = RankCards({&need, 1}, {}, BuiltinPrices());
  EXPECT_EQ(Row(table, "rtx5090").fit, Fit::kFits);
  EXPECT_EQ(Row(table, "rtx4090").fit, Fit::kMayFit);  // 23.64 GiB
  EXPECT_EQ(Row(table, "l4").fit, Fit::kTooSmall);     // 22.03 GiB
}

TEST(Cards, TheContextOfEachCardIsAddedWhereItIsNotIn) {
  Need need = Needs(10);
  need.includes_context = false;
  const CardTable table = RankCards({&need, 1}, {}, BuiltinPrices());
  for (const CardRow& row : table.rows) {
    EXPECT_EQ(row.used.expected, 10 * kGiB + catalogue::ContextOf(*row.gpu).bytes) << row.gpu->id;
  }
}

TEST(Cards, EveryCardWithAKnownTotalIsJudgedForEveryNeed) {
  const Need needs[] = {Needs(60), Needs(30, 2)};
  const CardTable table = RankCards(needs, {}, BuiltinPrices());
  std::set<std::pair<std::string_view, int>> judged;
  for (const CardRow& row : table.rows) judged.insert({row.gpu->id, row.cards});
  size_t known = 0;
  for (const catalogue::Gpu& gpu : catalogue::Gpus()) known += catalogue::TotalsOf(gpu).has_value() ? 1 : 0;
  EXPECT_EQ(judged.size(), 2 * known);
}

TEST(Cards, TheCheapestThatFitsComesFirst) {
  const Need needs[] = {Needs(20), Needs(12, 2)};
  const CardTable table = RankCards(needs, Hours(10), BuiltinPrices());
  double last = 0;
  Fit fit = Fit::kFits;
  for (const CardRow& row : table.rows) {
    EXPECT_GE(static_cast<int>(row.fit), static_cast<int>(fit));
    if (row.fit == Fit::kFits && row.cost && !row.converted) {
      EXPECT_GE(row.cost->total.expected, last) << row.gpu->id;
      last = row.cost->total.expected;
    }
    fit = row.fit;
  }
  EXPECT_GT(last, 0);
  EXPECT_EQ(table.rows.front().gpu->id, "rtx3090");  // 0.22 to 0.39 USD, the cheapest 24 GB card of the table
}

TEST(Cards, TheNearestMissComesFirstAmongThoseTooSmall) {
  const Need need = Needs(400);
  const CardTable table = RankCards({&need, 1}, {}, BuiltinPrices());
  EXPECT_EQ(table.rows.front().gpu->id, "gb300");
  for (const CardRow& row : table.rows) EXPECT_EQ(row.fit, Fit::kTooSmall);
}

TEST(Cost, IsHoursTimesCardsTimesPrice) {
  const Need needs[] = {Needs(20), Needs(20, 4)};
  const CardTable table = RankCards(needs, Hours(100), Table("rtx4090,24,USD,0.5,0.7,m,2026,s,\n"));
  const CardRow& one = Row(table, "rtx4090");
  EXPECT_DOUBLE_EQ(one.cost->rent.low, 50);
  EXPECT_DOUBLE_EQ(one.cost->total.expected, 60);
  EXPECT_DOUBLE_EQ(one.cost->rent.high, 70);
  EXPECT_DOUBLE_EQ(Row(table, "rtx4090", 4).cost->rent.expected, 240);
  EXPECT_EQ(Row(table, "l4").offer, nullptr);
  EXPECT_FALSE(Row(table, "l4").cost) << "no price, no cost";
}

TEST(Cost, ChargesEverythingHidden) {
  CostOptions options = Hours(10);
  options.hours_per_week = 20;
  options.premium_percent = 50;
  options.storage_gigabytes = 100;
  options.storage_per_gigabyte_day = 0.01;
  options.transfer_gigabytes = 30;
  options.transfer_per_gigabyte = 0.5;
  options.upload_gigabytes = 45;  // 45 GB at 100 Mbit/s: 3600 s
  options.uplink_megabits = 100;
  const Need need = Needs(20);
  const CardTable table = RankCards({&need, 1}, options, Table("l4,24,USD,1,1,m,2026,s,\n"));
  const CardRow& row = Row(table, "l4");
  EXPECT_DOUBLE_EQ(row.hours->expected, 11);
  EXPECT_DOUBLE_EQ(row.cost->rent.expected, 16.5);
  EXPECT_DOUBLE_EQ(row.cost->storage, 100 * 0.01 * 11 / 20 * 7);  // by the calendar, stopped or not
  EXPECT_DOUBLE_EQ(row.cost->transfer, 15);
  EXPECT_DOUBLE_EQ(row.cost->total.expected, 16.5 + row.cost->storage + 15);
}

TEST(Cost, BillsTheMinimumTerm) {
  CostOptions options = Hours(2);
  options.minimum_hours = 24;
  const Need need = Needs(20);
  const CardTable table = RankCards({&need, 1}, options, Table("l4,24,USD,1,1,m,2026,s,\n"));
  EXPECT_DOUBLE_EQ(Row(table, "l4").cost->rent.expected, 24);
}

TEST(Cost, ConvertsOnlyWhereACardHasNoOfferInTheCurrency) {
  CostOptions options = Hours(1);
  options.currency = "CNY";
  const Need need = Needs(20);
  const CardTable table = RankCards(
      {&need, 1}, options,
      Table("l4,24,USD,1,1,m,2026,s,\nrtx4090,24,USD,1,1,m,2026,s,\nrtx4090,24,CNY,9,9,m,2026,s,\n"));
  EXPECT_TRUE(Row(table, "l4").converted);
  EXPECT_DOUBLE_EQ(Row(table, "l4").cost->rent.expected, 7.2);
  EXPECT_FALSE(Row(table, "rtx4090").converted);
  EXPECT_DOUBLE_EQ(Row(table, "rtx4090").cost->rent.expected, 9);
}

TEST(Cost, MonthAndPurchaseBreakEven) {
  CostOptions options = Hours(10);
  options.hours_per_week = 40;
  options.purchases = {{"rtx4090", 2000}, {"rtx3090", 700}};
  options.resale_percent = 50;
  options.power_per_kwh = 0.2;
  const Need need = Needs(20);
  const CardTable table =
      RankCards({&need, 1}, options,
                Table("rtx4090,24,USD,0.5,0.5,m,2026,s,150\nrtx3090,24,USD,0.05,0.05,m,2026,s,\n"));
  const CardRow& row = Row(table, "rtx4090");
  EXPECT_DOUBLE_EQ(row.month_pays->hours, 300);
  EXPECT_THAT(row.buying_pays->hours, DoubleNear(1000 / (0.5 - 0.45 * 0.2), 1e-6));
  EXPECT_THAT(row.buying_pays->weeks, DoubleNear(row.buying_pays->hours / 40, 1e-6));
  EXPECT_TRUE(Row(table, "rtx3090").purchase_price);
  EXPECT_FALSE(Row(table, "rtx3090").buying_pays) << "its power costs 0.07 an hour, renting 0.05";
  EXPECT_FALSE(Row(table, "rtx3090").month_pays);
}

TEST(Speed, OtherCardsLieBetweenTheComputeAndTheBandwidthBound) {
  const catalogue::Gpu& reference = *catalogue::FindGpu("rtx4090");
  const catalogue::Gpu& h100 = *catalogue::FindGpu("h100-sxm");
  const auto ratio = TimeRatio(h100, reference, Arithmetic::kBf16, nullptr);
  ASSERT_TRUE(ratio);
  EXPECT_THAT(ratio->low, DoubleNear(165.2 / 989 / 1.2, 1e-9));
  EXPECT_THAT(ratio->high, DoubleNear(1008.0 / 3350 * 1.2, 1e-9));
  EXPECT_GT(ratio->expected, ratio->low);
  EXPECT_LT(ratio->expected, ratio->high);
  EXPECT_EQ(TimeRatio(reference, reference, Arithmetic::kBf16, nullptr)->high, 1);
}

TEST(Speed, UnknownSpeedSaysSoAndHasNoCost) {
  CostOptions options = Hours(10);
  options.reference = catalogue::FindGpu("rtx4090");
  const Need need = Needs(10);
  const CardTable table = RankCards({&need, 1}, options, Table(",16,USD,1,1,m,2026,s,\n"));
  const CardRow& row = Row(table, "v100-16");  // no BF16 figure in the catalogue
  EXPECT_FALSE(row.hours);
  EXPECT_FALSE(row.cost);
  EXPECT_THAT(row.why_no_hours, HasSubstr("v100-16"));
  options.arithmetic = Arithmetic::kFp32;
  const CardTable fp32 = RankCards({&need, 1}, options, Table(",16,USD,1,1,m,2026,s,\n"));
  EXPECT_TRUE(Row(fp32, "v100-16").cost);
}

TEST(Speed, WorkGivesHoursWithAWideBand) {
  CostOptions options;
  options.flops = 989e12 * 3600;  // an hour at the full rate
  const Need need = Needs(10);
  const CardTable table = RankCards({&need, 1}, options, BuiltinPrices());
  const CardRow& row = Row(table, "h100-sxm");
  EXPECT_TRUE(row.hours_are_estimated);
  EXPECT_THAT(row.hours->low, DoubleNear(1 / 0.55, 1e-9));
  EXPECT_THAT(row.hours->high, DoubleNear(5, 1e-9));
}

TEST(Speed, MoreCardsAreNeverMoreThanSoManyTimesAsFast) {
  for (const catalogue::Gpu& gpu : catalogue::Gpus()) {
    EXPECT_EQ(SpeedUp(gpu, 1).high, 1);
    for (const int cards : {2, 4, 8}) {
      const Range range = SpeedUp(gpu, cards);
      EXPECT_GE(range.low, 1) << gpu.id;
      EXPECT_LT(range.high, cards);
      EXPECT_LT(range.low, range.expected);
    }
  }
  EXPECT_GT(SpeedUp(*catalogue::FindGpu("h100-sxm"), 4).low, SpeedUp(*catalogue::FindGpu("rtx4090"), 4).low);
}

TEST(Options, ThatCannotBeRightAreNamed) {
  EXPECT_EQ(CheckOptions({}), "");
  CostOptions options;
  options.currency = "EUR";
  EXPECT_THAT(CheckOptions(options), HasSubstr("--currency"));
  options = {};
  options.hours_per_week = 169;
  EXPECT_THAT(CheckOptions(options), HasSubstr("--per-week"));
  options = {};
  options.hours = std::nan("");
  EXPECT_THAT(CheckOptions(options), HasSubstr("--hours"));
  options = {};
  options.storage_gigabytes = -1;
  EXPECT_THAT(CheckOptions(options), HasSubstr("--storage"));
  options = {};
  options.upload_gigabytes = 5;
  EXPECT_THAT(CheckOptions(options), HasSubstr("--uplink"));
  options = {};
  options.resale_percent = 120;
  EXPECT_THAT(CheckOptions(options), HasSubstr("--resale"));
}

TEST(Cards, AnAbsurdNeedDoesNotWrapAround) {
  Need need = {1, "", {}, false};
  need.used = {1, std::numeric_limits<uint64_t>::max() - 5, std::numeric_limits<uint64_t>::max()};
  const CardTable table = RankCards({&need, 1}, {}, BuiltinPrices());
  for (const CardRow& row : table.rows) EXPECT_EQ(row.fit, Fit::kTooSmall);
}

}  // namespace
}  // namespace vramtrace::gpus
