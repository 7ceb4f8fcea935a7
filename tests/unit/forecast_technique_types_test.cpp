// Half precision, all over and by autocast.

#include <gtest/gtest.h>

#include "tests/unit/forecast_technique_model.h"

namespace vramtrace::forecast {
namespace {

using testing::Apply;
using testing::kTable;
using testing::kValue;
using testing::kWeight;
using testing::LinearModel;
using testing::ReplayOf;

constexpr Bytes kWeights = kTable + 4 * kWeight;

TEST(PureHalfTest, HalvesEverything) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "pure-bf16"));
  const Outcome before = ReplayOf(model.stream());
  EXPECT_EQ(ReplayOf(edited).allocated.bytes, before.allocated.bytes / 2);
  EXPECT_EQ(edited.parameters.front().dtype, "bfloat16");
  EXPECT_EQ(edited.parameters.front().bytes, kTable / 2);
  EXPECT_TRUE(FindTechnique("pure-bf16")->is_on(edited));
  EXPECT_FALSE(FindTechnique("pure-bf16")->is_on(model.stream()));
}

TEST(PureHalfTest, IsRefusedWhereWeightsAreHalfAlready) {
  LinearModel model;
  for (Parameter& parameter : model.stream().parameters) parameter.dtype = "float16";
  EXPECT_EQ(std::get<std::string>(Apply(model.stream(), "pure-bf16")),
            "pure-bf16 cannot be applied: the run has it on already");
}

TEST(AutocastTest, KeepsCopiesOfWeightsAndInputs) {
  LinearModel model;
  const Bytes persistent = 3 * kWeights;  // weights and two moments
  EXPECT_EQ(LinearModel::AliveAtBackward(model.stream(), 1), persistent + 5 * kValue);
  const Stream edited = std::get<Stream>(Apply(model.stream(), "bf16-autocast"));
  // The embedding's output is cast for the first layer and goes; results of the four layers are half.
  EXPECT_EQ(LinearModel::AliveAtBackward(edited, 1), persistent + 5 * kValue / 2 + 4 * kWeight / 2);
}

TEST(AutocastTest, LeavesGradientsInSinglePrecision) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "bf16-autocast"));
  for (const Event& event : edited.events) {
    if (event.kind != EventKind::kAllocate) continue;
    const Request& request = edited[event.request];
    const bool kept = request.memory_class == MemoryClass::kGradient ||
                      request.memory_class == MemoryClass::kWeight ||
                      request.memory_class == MemoryClass::kOptimizerState;
    if (!kept) continue;
    EXPECT_EQ(request.bytes, edited[request.parameter].bytes);
  }
}

TEST(AutocastTest, IsRefusedWithoutProducts) {
  LinearModel model;
  for (Site& site : model.stream().sites) site.operator_name.clear();
  EXPECT_EQ(std::get<std::string>(Apply(model.stream(), "bf16-autocast")),
            "bf16-autocast cannot be applied: no matrix product was recorded");
}

}  // namespace
}  // namespace vramtrace::forecast
