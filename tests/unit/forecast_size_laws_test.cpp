// Sizes that look like a sample's, or like a weight's, and are the other: what else one recording tells.

#include <gtest/gtest.h>

#include "analyzer/forecast/size_laws.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::StreamMaker;

constexpr Bytes kMiB = 1 << 20;
constexpr Bytes kWeight = 4 * kMiB;
constexpr uint64_t kBatch = 2;

class SizeLaws : public ::testing::Test {
 protected:
  SizeLaws() : maker_(kBatch) {
    stream().parameters = {{"layer.weight", "layer", kWeight, 4, "float32", {1024, 1024}, true}};
  }
  Stream& stream() { return maker_.stream(); }
  // In backward, by a node of the layer.
  RequestId Backward(const char* operator_name, uint64_t node, Bytes bytes,
                     MemoryClass memory_class = MemoryClass::kTemporary) {
    const SiteId site = maker_.Site(++key_, Phase::kBackward, "layer");
    stream().sites[static_cast<size_t>(site)].operator_name = operator_name;
    const RequestId id = maker_.Allocate(site, bytes, memory_class);
    stream()[id].autograd_number = node;
    if (memory_class == MemoryClass::kGradient) stream()[id].parameter = ParameterId{0};
    return id;
  }
  // Bytes at twice the batch.
  Bytes AtTwice(RequestId id) {
    SetLawsByRule(&stream());
    return stream()[id].law.At(2 * kBatch);
  }

  StreamMaker maker_;
  uint64_t key_ = 0;
};

TEST_F(SizeLaws, TheInputsGradientMayHaveTheWeightsSize) {
  const RequestId input = Backward("MmBackward0", 5, kWeight);
  const RequestId twice = Backward("AddmmBackward0", 5, 2 * kWeight);
  const RequestId weight = Backward("MmBackward0", 5, kWeight, MemoryClass::kGradient);
  EXPECT_EQ(AtTwice(input), 2 * kWeight);
  EXPECT_EQ(AtTwice(twice), 4 * kWeight);
  EXPECT_EQ(AtTwice(weight), kWeight);
}

TEST_F(SizeLaws, WithoutANamedGradientTheSizeIsTheWeights) {
  const RequestId half = Backward("MmBackward0", 7, kWeight / 2);
  EXPECT_EQ(AtTwice(half), kWeight / 2) << "of a copy in half precision, whose cast names the gradient";
}

TEST_F(SizeLaws, ASumOfGradientsIsNoWeights) {
  const RequestId sum = Backward("ViewBackward0", 9, kWeight);
  EXPECT_EQ(AtTwice(sum), 2 * kWeight);
}

TEST_F(SizeLaws, OnlyProductsHaveWorkspaces) {
  const RequestId product = Backward("AddmmBackward0", 3, kMiB, MemoryClass::kWorkspace);
  const RequestId result = Backward("MulBackward0", 3, kMiB, MemoryClass::kWorkspace);
  EXPECT_EQ(AtTwice(product), kMiB);
  EXPECT_EQ(AtTwice(result), 2 * kMiB);
}

TEST_F(SizeLaws, WhatGoesWhileTheModelIsMadeIsNoBatch) {
  const SiteId site = maker_.Site(50, Phase::kLoad);
  const RequestId initial = maker_.Allocate(site, 64 * kMiB, MemoryClass::kInput);
  maker_.Free(initial);
  const RequestId batch = maker_.Allocate(site, 8 * kMiB, MemoryClass::kInput);
  EXPECT_EQ(AtTwice(initial), 64 * kMiB);
  EXPECT_EQ(AtTwice(batch), 16 * kMiB);
}

TEST_F(SizeLaws, AWeightThatItsParentUsesIsCopiedThere) {
  stream().parameters.push_back(
      {"attention.out_proj.weight", "attention.out_proj", kWeight, 4, "float32", {1024, 1024}, true});
  const SiteId attention = maker_.Site(60, Phase::kForward, "attention");
  const RequestId copy = maker_.Allocate(attention, kWeight / 2);
  EXPECT_EQ(AtTwice(copy), kWeight) << "nothing else of the run is a copy";
  stream()[maker_.Allocate(maker_.Site(62, Phase::kForward, "layer"), kWeight / 2)].is_copy = true;
  EXPECT_EQ(AtTwice(copy), kWeight / 2);
  // Where the child is called itself, its parent has no copy of it.
  maker_.Allocate(maker_.Site(61, Phase::kForward, "attention.out_proj"), kMiB);
  EXPECT_EQ(AtTwice(copy), kWeight);
}

}  // namespace
}  // namespace vramtrace::forecast
