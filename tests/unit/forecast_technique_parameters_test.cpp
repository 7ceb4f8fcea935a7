// What changes which parameters are trained.

#include <gtest/gtest.h>

#include "analyzer/forecast/techniques/parameters.h"
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
constexpr Bytes kRows = 2048;
constexpr Bytes kAdapter = 2 * 16 * 1024 * 4;  // rank 16: in and out are 1024

Bytes Sum(const Stream& stream, MemoryClass memory_class) {
  Bytes bytes = 0;
  for (const Event& event : stream.events) {
    if (event.kind != EventKind::kAllocate) continue;
    if (stream[event.request].memory_class == memory_class) bytes += stream[event.request].bytes;
  }
  return bytes;
}

TEST(LoraTest, AddsAdaptersAndTrainsNothingElse) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "lora"));
  // The head is left out: three layers.
  EXPECT_EQ(Sum(edited, MemoryClass::kWeight), kWeights + 3 * kAdapter);
  EXPECT_EQ(Sum(edited, MemoryClass::kGradient), 2 * 3 * kAdapter);  // in each of two steps
  EXPECT_EQ(Sum(edited, MemoryClass::kOptimizerState), 2 * 3 * kAdapter);
  EXPECT_EQ(TrainedParameters(edited).size(), 6U);
  EXPECT_TRUE(FindTechnique("lora")->is_on(edited));
}

TEST(LoraTest, SavesInputsOfAdaptersAndTheirThinResults) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "lora:rank=32"));
  const Bytes thin = kRows * 32 * 4;
  const Bytes persistent = kWeights + 3 * 3 * 2 * kAdapter;
  // The embedding's output and two layers' are read by adapters; the head's input goes, its output stays.
  EXPECT_EQ(LinearModel::AliveAtBackward(edited, 1), persistent + 3 * kValue + 3 * thin + kValue);
}

TEST(LoraTest, IsRefusedWithoutLinearLayers) {
  LinearModel model;
  for (Module& module : model.stream().modules) {
    if (module.class_name == "Linear") module.class_name = "Conv2d";
  }
  EXPECT_EQ(std::get<std::string>(Apply(model.stream(), "lora")),
            "lora cannot be applied: the model has no linear layers to adapt");
}

TEST(QloraTest, KeepsWeightsInFourBits) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "qlora"));
  // 1024 x 1024 elements: 0.5 bytes each, a scale a block of 64, 4 bytes for 256 scales, two tables, an
  // offset.
  const Bytes quantised = (1 << 20) / 2 + (1 << 14) + (1 << 6) * 4 + 16 * 4 + 256 * 4 + 4;
  EXPECT_EQ(Sum(edited, MemoryClass::kWeight), kTable + kWeight + 3 * (quantised + kAdapter / 2));
  EXPECT_EQ(Sum(edited, MemoryClass::kGradient), 2 * 3 * kAdapter / 2);
  EXPECT_TRUE(FindTechnique("qlora")->is_on(edited));
}

TEST(QloraTest, HoldsOneWeightInHalfPrecisionAtATime) {
  LinearModel model;
  Bytes widest = 0;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "qlora"));
  Bytes alive = 0;
  for (const Event& event : edited.events) {
    if (event.kind == EventKind::kStepEnd) continue;
    const Request& request = edited[event.request];
    if (request.bytes != kWeight / 2 || request.memory_class != MemoryClass::kTemporary) continue;
    alive += event.kind == EventKind::kAllocate ? request.bytes : 0 - request.bytes;
    widest = std::max(widest, alive);
  }
  EXPECT_EQ(widest, kWeight / 2);
}

TEST(QloraTest, IsRefusedForTransposedLayers) {
  LinearModel model;
  model.stream().modules.push_back({"other", "Conv1D"});
  EXPECT_EQ(std::get<std::string>(Apply(model.stream(), "qlora")),
            "qlora cannot be applied: bitsandbytes quantises nn.Linear, and this model's layers are "
            "transformers' Conv1D");
}

TEST(FreezeTest, TrainsTheLastBlockAndTheHead) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "freeze"));
  EXPECT_EQ(Sum(edited, MemoryClass::kGradient), 2 * 2 * kWeight);
  EXPECT_EQ(Sum(edited, MemoryClass::kOptimizerState), 2 * 2 * kWeight);
  // Only the inputs of the last block and of the head are saved, and the output is held.
  EXPECT_EQ(LinearModel::AliveAtBackward(edited, 1), kWeights + 2 * 2 * kWeight + 3 * kValue);
  const Stream more = std::get<Stream>(Apply(model.stream(), "freeze:blocks=2"));
  EXPECT_EQ(Sum(more, MemoryClass::kGradient), 2 * 3 * kWeight);
}

TEST(RecipeTest, RebuildsTheRecordedOptimizer) {
  LinearModel model;
  const Stream rebuilt = Rebuild(model.stream(), RecipeOf(model.stream()));
  EXPECT_EQ(ReplayOf(rebuilt).allocated.bytes, ReplayOf(model.stream()).allocated.bytes);
  EXPECT_EQ(Sum(rebuilt, MemoryClass::kOptimizerState), Sum(model.stream(), MemoryClass::kOptimizerState));
}

}  // namespace
}  // namespace vramtrace::forecast
