#include <gtest/gtest.h>

#include "preload/catalogue/catalogue.h"
#include "preload/catalogue/csv.h"

namespace vramtrace::catalogue {
namespace {

constexpr uint64_t kMebibyte = 1u << 20;

TEST(CsvTable, ReadsQuotedFields) {
  CsvTable table("a,b,c\n1,\"x, \"\"y\"\"\",3\n4,,\n");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table.Field(0, "b"), "x, \"y\"");
  EXPECT_EQ(table.Field(0, "c"), "3");
  EXPECT_EQ(table.Field(1, "b"), "");
  EXPECT_EQ(table.Field(1, "d"), "");
}

TEST(Totals, AreThoseOfTheTable) {
  EXPECT_EQ(TotalsOf(*FindGpu("rtx4090"))->cuda_bytes, 24207 * kMebibyte);
  EXPECT_EQ(TotalsOf(*FindGpu("rtx4090"))->nvml_bytes, 24564 * kMebibyte);
  EXPECT_EQ(TotalsOf(*FindGpu("a100-80"))->cuda_bytes, 84987084800u);
}

TEST(Totals, AreExactWherePublishedToTheByte) {
  EXPECT_EQ(TotalsOf(*FindGpu("rtx6000ada"))->cuda_bytes, 50865307648u);
  EXPECT_EQ(TotalsOf(*FindGpu("rtxpro5000"))->cuda_bytes, 76374540288u);
}

TEST(Totals, SayWhenTheyAreDerived) {
  auto totals = TotalsOf(*FindGpu("rtxpro5000"));
  EXPECT_EQ(totals->nvml_basis, Basis::kDerived);
  EXPECT_EQ(totals->cuda_basis, Basis::kMeasured);
}

TEST(Context, IsMeasuredWhereSomebodyDid) {
  EXPECT_EQ(ContextOf(*FindGpu("rtx6000ada")).bytes, 446693376u);
  EXPECT_EQ(ContextOf(*FindGpu("rtx6000ada")).basis, Basis::kMeasured);
}

TEST(Context, IsThePriorOfTheNearestOlderCardElsewhere) {
  EXPECT_EQ(ContextOf(*FindGpu("h100")).basis, Basis::kKnowledge);
  EXPECT_EQ(ContextOf(*FindGpu("b300")).bytes, ContextOf(*FindGpu("b200")).bytes);
  EXPECT_EQ(ContextOf(*FindGpu("p100")).bytes, ContextOf(*FindGpu("t4")).bytes);
}

TEST(MigProfiles, AreSmallerThanTheirCard) {
  ASSERT_EQ(MigProfiles().size(), 37u);
  for (const MigProfile& profile : MigProfiles()) {
    EXPECT_GT(profile.memory_bytes, 4000 * kMebibyte) << profile.profile;
    EXPECT_GT(profile.multiprocessors, 0);
    EXPECT_GE(profile.max_instances, 1);
    EXPECT_NE(profile.basis, Basis::kUnknown);
  }
}

TEST(Prices, NameACardOrAMemorySize) {
  ASSERT_FALSE(Prices().empty());
  for (const Price& price : Prices()) {
    EXPECT_TRUE(price.gpu_id.empty() || FindGpu(price.gpu_id) != nullptr) << price.gpu_id;
    EXPECT_GT(price.memory_gigabytes, 0);
    EXPECT_GT(price.per_hour_low, 0);
    EXPECT_GE(price.per_hour_high, price.per_hour_low);
    EXPECT_FALSE(price.currency.empty());
    EXPECT_FALSE(price.source.empty());
    EXPECT_FALSE(price.date.empty());
  }
}

}  // namespace
}  // namespace vramtrace::catalogue
