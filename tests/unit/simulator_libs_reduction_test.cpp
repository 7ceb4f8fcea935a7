#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "preload/simulator/nccl/reduction.h"

namespace {

using namespace vramtrace::simulator::nccl;

template <typename Value>
Value Reduced(Value value, ncclDataType_t type, ncclRedOp_t operation, int ranks) {
  EXPECT_TRUE(ReduceIdentical(&value, 1, type, operation, ranks));
  return value;
}

TEST(Reduction, OfIdenticalPeers) {
  EXPECT_EQ(Reduced<float>(1.5F, ncclFloat32, ncclSum, 8), 12.0F);
  EXPECT_EQ(Reduced<float>(1.5F, ncclFloat32, ncclAvg, 8), 1.5F);
  EXPECT_EQ(Reduced<float>(2.0F, ncclFloat32, ncclProd, 3), 8.0F);
  EXPECT_EQ(Reduced<double>(-3.0, ncclFloat64, ncclMin, 4), -3.0);
  EXPECT_EQ(Reduced<int32_t>(-7, ncclInt32, ncclSum, 3), -21);
  EXPECT_EQ(Reduced<uint8_t>(200, ncclUint8, ncclSum, 2), 144);  // wraps, as the hardware does
  EXPECT_EQ(Reduced<int8_t>(3, ncclInt8, ncclMax, 5), 3);
}

TEST(Reduction, KeepsAllBitsOf64BitIntegers) {
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ(Reduced<int64_t>(large, ncclInt64, ncclSum, 2), 2 * large);
  EXPECT_EQ(Reduced<int64_t>(large, ncclInt64, ncclSum, 1), large);
}

TEST(Reduction, PreMultipliedSum) {
  const ncclRedOp_t operation = CreatePreMultiplied(0.25);
  EXPECT_GE(static_cast<int>(operation), static_cast<int>(ncclNumOps));
  EXPECT_EQ(Reduced<float>(3.0F, ncclFloat32, operation, 4), 3.0F);
  EXPECT_EQ(Reduced<float>(3.0F, ncclFloat32, operation, 1), 0.75F);
}

TEST(Reduction, RefusesWhatItCannotDecode) {
  uint8_t value = 1;
  EXPECT_FALSE(ReduceIdentical(&value, 1, ncclFloat8e4m3, ncclSum, 2));
  EXPECT_FALSE(ReduceIdentical(&value, 1, ncclNumTypes, ncclSum, 2));
}

// Every half and bfloat16 value survives a round trip, so that the conversions round nothing twice.
TEST(Reduction, SixteenBitFloatsRoundTrip) {
  for (const ncclDataType_t type : {ncclFloat16, ncclBfloat16}) {
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      const double value = Load(&half, type);
      uint16_t back = 0;
      Save(&back, type, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(Load(&back, type)));
      } else {
        ASSERT_EQ(back, half) << "type " << type;
      }
    }
  }
}

TEST(Reduction, SixteenBitFloatsRoundToNearestEven) {
  uint16_t half = 0;
  Save(&half, ncclFloat16, 2049.0);  // halfway between 2048 and 2050
  EXPECT_EQ(Load(&half, ncclFloat16), 2048.0);
  Save(&half, ncclFloat16, 2051.0);
  EXPECT_EQ(Load(&half, ncclFloat16), 2052.0);
  Save(&half, ncclFloat16, 65519.0);
  EXPECT_EQ(Load(&half, ncclFloat16), 65504.0);
  Save(&half, ncclFloat16, 65520.0);
  EXPECT_TRUE(std::isinf(Load(&half, ncclFloat16)));
  Save(&half, ncclBfloat16, 257.0);
  EXPECT_EQ(Load(&half, ncclBfloat16), 256.0);
}

}  // namespace
