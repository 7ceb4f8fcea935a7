#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "preload/catalogue/catalogue.h"

namespace vramtrace::catalogue {
namespace {

constexpr uint64_t kMebibyte = 1u << 20;

TEST(Gpus, AreTheFiftyTwoOfTheTable) { EXPECT_EQ(Gpus().size(), 52u); }

TEST(Gpus, HaveUniqueIdsAndNames) {
  std::set<std::string_view> ids;
  std::set<std::string_view> names;
  for (const Gpu& gpu : Gpus()) {
    EXPECT_TRUE(ids.insert(gpu.id).second) << gpu.id;
    EXPECT_TRUE(names.insert(gpu.device_name).second) << gpu.device_name;
  }
}

class EveryGpu : public testing::TestWithParam<int> {
 protected:
  const Gpu& gpu() const { return Gpus()[static_cast<size_t>(GetParam())]; }
};

TEST_P(EveryGpu, HasItsColumns) {
  EXPECT_FALSE(gpu().device_name.empty());
  EXPECT_GE(gpu().compute_major, 6);
  EXPECT_GT(gpu().multiprocessors, 0);
  EXPECT_GT(gpu().sold_gigabytes, 0);
  EXPECT_GT(gpu().bandwidth_gb_per_s, 0);
  EXPECT_GT(gpu().fp32_tflops, 0);
  EXPECT_GT(gpu().power_watts, 0);
  EXPECT_FALSE(gpu().pcie.empty());
}

TEST_P(EveryGpu, HasARowInSpecs) {
  EXPECT_GT(gpu().bus_width_bits, 0);
  EXPECT_GE(gpu().l2_bytes, kMebibyte);
  EXPECT_GT(gpu().clock_mhz, 1000);
  // Bandwidth and bus width must belong together: no memory is slower or faster than this.
  EXPECT_GT(gpu().memory_clock_mhz, 350);
  EXPECT_LT(gpu().memory_clock_mhz, 16000);
}

TEST_P(EveryGpu, HasLimitsOfItsOwnComputeCapability) {
  const Limits& limits = LimitsOf(gpu());
  EXPECT_EQ(limits.compute_major, gpu().compute_major);
  EXPECT_EQ(limits.compute_minor, gpu().compute_minor);
  EXPECT_GE(limits.threads_per_multiprocessor, 1024);
  EXPECT_GE(limits.blocks_per_multiprocessor, 16);
  EXPECT_GE(limits.shared_per_multiprocessor, limits.shared_per_block_opt_in);
  EXPECT_GE(limits.shared_per_block_opt_in, limits.shared_per_block);
}

TEST_P(EveryGpu, HasTotalsThatFitTogether) {
  std::string why;
  auto totals = TotalsOf(gpu(), &why);
  if (gpu().id == "b100") {
    EXPECT_FALSE(totals);
    EXPECT_THAT(why, testing::HasSubstr("VRAMTRACE_SIM_TOTAL"));
    return;
  }
  ASSERT_TRUE(totals) << why;
  EXPECT_LT(totals->cuda_bytes, totals->nvml_bytes);
  EXPECT_GT(totals->cuda_bytes, totals->nvml_bytes / 100 * 96);
  uint64_t sold = static_cast<uint64_t>(gpu().sold_gigabytes) << 30;
  EXPECT_GT(totals->cuda_bytes, sold / 100 * 88);
  EXPECT_LT(totals->cuda_bytes, sold);
}

TEST_P(EveryGpu, HasAContextChargeWithItsBasis) {
  ContextCharge charge = ContextOf(gpu());
  EXPECT_GT(charge.bytes, 100 * kMebibyte);
  EXPECT_LT(charge.bytes, 1000 * kMebibyte);
  EXPECT_NE(charge.basis, Basis::kUnknown);
  EXPECT_FALSE(charge.source.empty());
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryGpu, testing::Range(0, 52), [](const auto& row) {
  std::string name(Gpus()[static_cast<size_t>(row.param)].id);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace vramtrace::catalogue
