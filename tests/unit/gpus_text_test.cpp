#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/gpus/cost_text.h"

namespace vramtrace::gpus {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kGiB = 1u << 30;

CardTable Example(CostOptions options, uint64_t gibibytes = 20) {
  const Need needs[] = {
      {1, "", {gibibytes * kGiB, gibibytes * kGiB, gibibytes * kGiB}, true},
      {2, "FSDP over 2", {gibibytes * kGiB / 2, gibibytes * kGiB / 2, gibibytes * kGiB / 2}, true}};
  return RankCards(needs, std::move(options), BuiltinPrices());
}

TEST(CardsText, ShowsEachCardOnceWithItsPriceDateAndVerdict) {
  const std::string text = CardsText(Example({}));
  EXPECT_THAT(text, AllOf(HasSubstr("the cheapest hour first (money in USD; prices: builtin)"),
                          HasSubstr("RunPod, 2026-03-10"), HasSubstr("23.69 GiB"), HasSubstr("too small")));
  EXPECT_EQ(text.find("  rtx3090 "), text.rfind("  rtx3090 ")) << "the dearer arrangement is left out";
  EXPECT_THAT(text, HasSubstr("a month pays below USD"));
}

TEST(CardsText, SaysWhatIsAnEstimateAndWhatIsNotKnown) {
  CostOptions options;
  options.hours = 10;
  EXPECT_THAT(CardsText(Example(options)), HasSubstr("taken as the same on every card"));
  options.reference = catalogue::FindGpu("rtx4090");
  const std::string text = CardsText(Example(options, 15));
  EXPECT_THAT(text, HasSubstr("Hours on other cards are estimates"));
  EXPECT_THAT(text, AllOf(HasSubstr("Speed unknown"), HasSubstr("v100-16")));
}

TEST(CardsText, SaysWhenBuyingPays) {
  CostOptions options;
  options.purchases = {{"rtx3090", 800}};
  EXPECT_THAT(CardsText(Example(options)),
              HasSubstr("rtx3090: buying at USD 800 pays after 2,623 hours of use"));
}

TEST(CardsText, SaysWhenNothingFits) {
  const std::string text = CardsText(Example({}, 4000));
  EXPECT_THAT(text, AllOf(HasSubstr("none in the catalogue"), HasSubstr("nearest miss is 2 x gb300")));
}

TEST(CardsJson, HoldsEveryRowWithSourcesAndBasis) {
  CostOptions options;
  options.hours = 10;
  const CardTable table = Example(options);
  const nlohmann::ordered_json json = CardsJson(table);
  ASSERT_EQ(json["rows"].size(), table.rows.size());
  const auto& first = json["rows"][0];
  EXPECT_EQ(first["gpu"], table.rows[0].gpu->id);
  EXPECT_EQ(first["verdict"], "fits");
  EXPECT_EQ(first["offer"]["date"], table.rows[0].offer->date);
  EXPECT_EQ(first["offer"]["source"], table.rows[0].offer->source);
  EXPECT_EQ(first["hours_basis"], "given");
  const auto& cost = first["cost"];
  EXPECT_DOUBLE_EQ(cost["total"]["expected"].get<double>(), cost["rent"]["expected"].get<double>() +
                                                                cost["storage"].get<double>() +
                                                                cost["transfer"].get<double>());
}

TEST(Amount, HasAsManyDigitsAsItDeserves) {
  EXPECT_EQ(Amount(0.604), "0.60");
  EXPECT_EQ(Amount(12.36), "12.4");
  EXPECT_EQ(Amount(345.6), "346");
  EXPECT_EQ(Amount(12345.6), "12,346");
  EXPECT_EQ(Amount(1.5e9), "1.5e+09");
}

}  // namespace
}  // namespace vramtrace::gpus
