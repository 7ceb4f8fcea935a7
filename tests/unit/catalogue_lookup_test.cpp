#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preload/catalogue/catalogue.h"
#include "preload/catalogue/csv.h"
#include "preload/catalogue/data.h"

namespace vramtrace::catalogue {
namespace {

std::string_view IdOf(std::string_view name) {
  const Gpu* gpu = FindGpu(name);
  return gpu == nullptr ? "" : gpu->id;
}

TEST(FindGpu, FindsEveryRowByIdAndByDeviceName) {
  for (const Gpu& gpu : Gpus()) {
    EXPECT_EQ(IdOf(gpu.id), gpu.id);
    EXPECT_EQ(IdOf(gpu.device_name), gpu.id);
  }
}

TEST(FindGpu, IgnoresCaseSpacesAndVendor) {
  for (std::string_view name :
       {"rtx4090", "RTX 4090", "NVIDIA GeForce RTX 4090", "nvidia rtx-4090", "GeForce RTX 4090", "4090"}) {
    EXPECT_EQ(IdOf(name), "rtx4090") << name;
  }
  EXPECT_EQ(IdOf("Tesla T4"), "t4");
  EXPECT_EQ(IdOf("A100-SXM4-80GB"), "a100-80-sxm");
}

TEST(FindGpu, TellsNeighboursApart) {
  EXPECT_EQ(IdOf("rtx 4090 d"), "rtx4090d");
  EXPECT_EQ(IdOf("rtx3090 ti"), "rtx3090ti");
  EXPECT_EQ(IdOf("l40"), "l40");
  EXPECT_EQ(IdOf("l40s"), "l40s");
}

TEST(FindGpu, FollowsEveryAlias) {
  CsvTable aliases(data::kAliases);
  ASSERT_GT(aliases.size(), 0u);
  for (size_t row = 0; row < aliases.size(); ++row) {
    EXPECT_EQ(IdOf(aliases.Field(row, "alias")), aliases.Field(row, "id"));
  }
}

TEST(FindGpu, KnowsNoOther) {
  for (std::string_view name : {"", " ", "rtx9999", "nvidia", "radeon"}) EXPECT_EQ(IdOf(name), "") << name;
}

TEST(NearNames, PutsTheIntendedCardFirst) {
  EXPECT_EQ(NearNames("rtx4091").front(), "rtx4090");
  EXPECT_EQ(NearNames("h1000-sxm").front(), "h100-sxm");
  EXPECT_THAT(NearNames("rtx 3090 super"), testing::Contains("rtx3090"));
  EXPECT_EQ(NearNames("x", 3).size(), 3u);
}

TEST(UnknownGpuMessage, NamesTheInputAndTheNearOnes) {
  std::string message = UnknownGpuMessage("rtx4091");
  EXPECT_THAT(message, testing::HasSubstr("'rtx4091'"));
  EXPECT_THAT(message, testing::HasSubstr("rtx4090"));
}

}  // namespace
}  // namespace vramtrace::catalogue
