// Names as PyTorch 2.15's wheel registers them, and near misses that must have no rule.
#include <gtest/gtest.h>

#include "preload/simulator/cudart/value_rules.h"

namespace vramtrace::simulator::runtime {
namespace {

constexpr const char* kFillFloat =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EELb0EEEviT0_T1_";
constexpr const char* kFillBfloat16 =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
    "11FillFunctorIN3c108BFloat16EEESt5arrayIPcLm1EELb0EEEviT0_"
    "T1_";
constexpr const char* kFillOlder =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIlEENS_6detail5ArrayIPcLi1EEEEEviT0_"
    "T1_";
constexpr const char* kRangeLong =
    "_ZN50_GLOBAL__N__2fa45684_17_RangeFactories_cu_38772b0829elementwise_kernel_with_"
    "indexIiZZZN2at6native15arange_"
    "cuda_outERKN3c106ScalarES6_S6_RNS1_6TensorEENKUlvE_clEvENKUlvE2_clEvEUllE_EEvT_T0_PN15function_"
    "traitsISD_E11result"
    "_typeE";
constexpr const char* kRangeFloat =
    "_ZN50_GLOBAL__N__2fa45684_17_RangeFactories_cu_38772b0829elementwise_kernel_with_"
    "indexIlZZZN2at6native15arange_"
    "cuda_outERKN3c106ScalarES6_S6_RNS1_6TensorEENKUlvE_clEvENKUlvE5_clEvEUllE_EEvT_T0_PN15function_"
    "traitsISD_E11result"
    "_typeE";
constexpr const char* kCountFlags =
    "_ZN14at_cuda_detail3cub6detail6reduce18DeviceReduceKernelINS2_10policy_hubIiyN4cuda3std3__"
    "44plusIvEEE10Policy1000"
    "EN6thrust38_V_300200_SM_750_800_860_900_1000_120018transform_iteratorIN2at6native43_GLOBAL__N__a7e516da_"
    "10_"
    "Nonzero_cu_cba1aaa09NonZeroOpIbEEPKbNSD_11use_defaultESM_EEyS9_iNS7_8identityEEEvT0_PT3_T1_NS0_"
    "13GridEvenShareISS_EET2_T4_";
constexpr const char* kAll =
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_15and_kernel_"
    "cudaERNS_14TensorIteratorEENKUlvE_clEvENKUlvE10_clEvEUlbbE_EEjbLi4ELi4EEEEEvT1_";

TEST(ValueRules, KnowFills) {
  EXPECT_EQ(RuleFor(kFillFloat).kind, RuleKind::kFill);
  EXPECT_EQ(RuleFor(kFillFloat).width, 4);
  EXPECT_EQ(RuleFor(kFillBfloat16).width, 2);
  EXPECT_EQ(RuleFor(kFillOlder).kind, RuleKind::kFill);
  EXPECT_EQ(RuleFor(kFillOlder).width, 8);
}

TEST(ValueRules, KnowRangesByTypeAndIndex) {
  const Rule longs = RuleFor(kRangeLong);
  EXPECT_EQ(longs.kind, RuleKind::kRange);
  EXPECT_EQ(longs.width, 8);
  EXPECT_EQ(longs.count_width, 4);
  EXPECT_FALSE(longs.floating);
  const Rule floats = RuleFor(kRangeFloat);
  EXPECT_EQ(floats.width, 4);
  EXPECT_EQ(floats.count_width, 8);
  EXPECT_TRUE(floats.floating);
}

TEST(ValueRules, KnowCountsAndFlags) {
  EXPECT_EQ(RuleFor(kCountFlags).kind, RuleKind::kCountNonZero);
  EXPECT_EQ(RuleFor(kCountFlags).width, 1);
  EXPECT_EQ(RuleFor(kCountFlags).count_width, 8);
  EXPECT_EQ(RuleFor(kAll).kind, RuleKind::kAllFlags);
}

TEST(ValueRules, HaveNoneForAnythingElse) {
  for (const char* name :
       {"?", "", "_ZN2at6native13reduce_kernelILi512E",
        // two pointers; a type that is not known; another functor; arguments in another order
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm2EELb0EEEviT0_"
        "T1_",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
        "11FillFunctorI5OtherEESt5arrayIPcLm1EELb0EEEviT0_T1_",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_10AbsFunctorIfEESt5arrayIPcLm1EELb0EEEviT0_T1_",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EELb0EEEvT0_"
        "iT1_"}) {
    EXPECT_EQ(RuleFor(name).kind, RuleKind::kNone) << name;
  }
}

}  // namespace
}  // namespace vramtrace::simulator::runtime
