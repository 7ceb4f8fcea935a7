#include <gtest/gtest.h>

#include "analyzer/fit/values.h"

namespace vramtrace::fit {
namespace {

TEST(Values, AreAllTakenUntilOneIsRejected) {
  Values values(1, 100);
  values.Accept(4);
  values.Accept(8);
  EXPECT_EQ(values.step(), 1U);
  EXPECT_EQ(values.AtOrBelow(37), 37U);
  EXPECT_EQ(values.AtOrBelow(200), 100U);
  EXPECT_EQ(values.AtOrAbove(0), 1U);
  EXPECT_EQ(values.AtOrAbove(101), std::nullopt);
  EXPECT_EQ(values.AtOrBelow(0), std::nullopt);
}

TEST(Values, LearnThatOnlyMultiplesAreTaken) {
  Values values(1, 1000);
  values.Reject(4);
  values.Accept(8);
  values.Accept(16);
  EXPECT_EQ(values.step(), 8U);
  EXPECT_EQ(values.AtOrBelow(37), 32U);
  EXPECT_EQ(values.AtOrAbove(33), 40U);
  EXPECT_EQ(values.AtOrAbove(1), 8U);
  EXPECT_EQ(values.AtOrBelow(7), std::nullopt);

  Values threes(1, 1000);
  for (const uint64_t value : {4, 8, 16, 32}) threes.Reject(value);
  threes.Accept(12);
  EXPECT_EQ(threes.step(), 3U);
}

TEST(Values, LearnMoreFromLaterRejections) {
  Values values(1, 1000);
  values.Accept(4);
  values.Accept(8);
  values.Reject(37);
  EXPECT_EQ(values.step(), 2U);
  values.Reject(38);
  EXPECT_EQ(values.step(), 4U);
  EXPECT_EQ(values.AtOrBelow(37), 36U);
}

TEST(Values, LearnBoundsWhereNoMultipleExplains) {
  Values values(1, 1000);
  values.Accept(8);
  values.Accept(16);
  values.Reject(512);  // a multiple of both: more than the data set has
  EXPECT_EQ(values.step(), 1U);
  EXPECT_EQ(values.AtOrBelow(800), 511U);
  EXPECT_EQ(values.AtOrAbove(512), std::nullopt);
}

TEST(Values, NeverOfferARejectedOne) {
  Values values(2, 9);
  values.Reject(9);
  EXPECT_EQ(values.AtOrBelow(9), 8U);
  EXPECT_EQ(values.AtOrAbove(9), std::nullopt);
}

}  // namespace
}  // namespace vramtrace::fit
