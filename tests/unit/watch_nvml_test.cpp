#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/watch_fixture.h"

namespace vramtrace::watch {
namespace {

using ::testing::HasSubstr;

class WatchNvml : public WatchTest {};

TEST_F(WatchNvml, AsksEverythingOfACard) {
  WriteScenario(
      "utilization = 41\nmemory_utilization = 17\ntemperature = 77\npower = 301\npower_limit = 320\n"
      "sm_clock = 1500\nthrottle = sw_power, hw_thermal\npcie_generation = 3\npcie_width = 8\n"
      "[gpu 1]\nutilization = 3\necc = 1\nnvlinks = 4\n");
  std::string why;
  const auto library = OpenNvml(&why);
  ASSERT_NE(library, nullptr) << why;
  ASSERT_EQ(library->devices().size(), 2u);
  const nvml::Device& card = library->devices()[0];
  EXPECT_EQ(card.Name().Or(""), "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(card.Uuid().Or(""), UuidOfCard(0));
  EXPECT_TRUE(nvml::IsSimulated(card));
  EXPECT_EQ(card.UtilizationRates().Or({}).gpu, 41u);
  EXPECT_EQ(card.UtilizationRates().Or({}).memory, 17u);
  EXPECT_EQ(card.Celsius().Or(0), 77u);
  EXPECT_DOUBLE_EQ(card.Watts().Or(0), 301);
  EXPECT_DOUBLE_EQ(card.WattsLimit().Or(0), 320);
  EXPECT_EQ(card.SmClock().Or(0), 1500u);
  EXPECT_GT(card.SmClockMost().Or(0), 2000u);
  EXPECT_EQ(card.ThrottleReasons().Or(0), nvml::kPowerCap | nvml::kThermalHardware);
  EXPECT_EQ(card.LinkNow().Or({}), (nvml::PcieLink{3, 8}));
  EXPECT_EQ(card.LinkMost().Or({}), (nvml::PcieLink{4, 16}));
  EXPECT_FALSE(card.Ecc()) << "the card has none to switch";
  EXPECT_FALSE(card.Mig().Or(true));
  const nvml::Device& other = library->devices()[1];
  EXPECT_EQ(other.UtilizationRates().Or({}).gpu, 3u);
  EXPECT_EQ(other.UtilizationRates().Or({}).memory, 17u) << "what holds for every card stays";
  EXPECT_TRUE(other.Ecc().Or(false));
  EXPECT_EQ(other.NvLinks().Or(0), 4u);
}

TEST_F(WatchNvml, SaysWhyItIsNotThere) {
  std::string why;
  EXPECT_EQ(nvml::Library::Open(&why, "/no/such/libnvidia-ml.so.1"), nullptr);
  EXPECT_THAT(why, HasSubstr("no NVIDIA driver"));
  WriteScenario("nvml = no_permission");
  EXPECT_EQ(OpenNvml(&why), nullptr);
  EXPECT_THAT(why, HasSubstr("Insufficient Permissions"));
}

TEST_F(WatchNvml, AnAnswerThatIsMissingHasAReason) {
  std::string why;
  const auto library = OpenNvml(&why);
  ASSERT_NE(library, nullptr);
  const auto links = library->devices()[0].NvLinks();
  EXPECT_FALSE(links);
  EXPECT_THAT(links.why, HasSubstr("nvmlDeviceGetNvLinkState answers Not Supported"));
}

}  // namespace
}  // namespace vramtrace::watch
