// What waits on the host; Muon; shorter sequences.

#include <gtest/gtest.h>

#include "tests/unit/forecast_technique_model.h"

namespace vramtrace::forecast {
namespace {

using testing::Apply;
using testing::kMiB;
using testing::kTable;
using testing::kValue;
using testing::kWeight;
using testing::LinearModel;
using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kLinears = (LinearModel::kLayers + 1) * kWeight;
constexpr Bytes kAll = kTable + kLinears;

TEST(OptimizerOffloadTest, LeavesWeightsGradientsAndActivations) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "optimizer-offload"));
  for (const Event& event : edited.events) {
    if (event.kind != EventKind::kAllocate) continue;
    EXPECT_NE(edited[event.request].memory_class, MemoryClass::kOptimizerState);
    EXPECT_NE(event.phase, Phase::kOptimizer);
  }
  // In the backward of the last layer but one: the weights, the inputs of three layers and the output, two
  // gradients of values and two of weights.
  EXPECT_EQ(ReplayOf(edited).allocated.bytes, kAll + 4 * kValue + 2 * kValue + 2 * kWeight);
  EXPECT_TRUE(FindTechnique("optimizer-offload")->is_on(edited));
  EXPECT_FALSE(FindTechnique("optimizer-offload")->is_on(model.stream()));
  EXPECT_EQ(std::get<std::string>(Apply(edited, "optimizer-offload")),
            "optimizer-offload cannot be applied: the run has it on already");
  Stream sgd = edited;
  sgd.facts.optimizers = {"SGD"};
  EXPECT_EQ(std::get<std::string>(Apply(sgd, "optimizer-offload")),
            "optimizer-offload cannot be applied: the optimizer keeps no state");
}

TEST(ActivationOffloadTest, BringsBackWhatANodeReads) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "activation-offload"));
  const Bytes before = LinearModel::AliveAtBackward(model.stream(), 1);
  const Bytes after = LinearModel::AliveAtBackward(edited, 1);
  // The inputs of all linear layers wait on the host; the output is the program's.
  EXPECT_EQ(before - after, (LinearModel::kLayers + 1) * kValue);
  std::vector<int> alive(edited.requests.size());
  for (const Event& event : edited.events) {
    if (event.kind == EventKind::kStepEnd) continue;
    int& count = alive[static_cast<size_t>(event.request)];
    count += event.kind == EventKind::kAllocate ? 1 : -1;
    ASSERT_TRUE(count == 0 || count == 1);
  }
}

TEST(ActivationOffloadTest, NeedsSomethingToMove) {
  EXPECT_EQ(
      std::get<std::string>(Apply(Stream{}, "activation-offload")),
      "activation-offload cannot be applied: no activation of 1 MiB or more is kept for a backward pass");
}

TEST(MuonTest, KeepsOneMomentOfTheBlocksMatrices) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "muon"));
  constexpr Bytes kMatrices = LinearModel::kLayers * kWeight;
  constexpr Bytes kOthers = kAll - kMatrices;
  // Two moments of the embedding and the head, and the list of their roots.
  EXPECT_EQ(ReplayOf(edited).allocated.bytes, 2 * kAll + kMatrices + 3 * kOthers + kValue);
  EXPECT_TRUE(FindTechnique("muon")->is_on(edited));
  EXPECT_FALSE(FindTechnique("muon")->is_on(model.stream()));
}

TEST(MuonTest, NeedsAMatrix) {
  LinearModel model;
  for (Parameter& parameter : model.stream().parameters) parameter.shape = {1024 * 1024};
  EXPECT_EQ(std::get<std::string>(Apply(model.stream(), "muon")),
            "muon cannot be applied: no repeated block has a matrix to train");
}

// One step over 4 sequences of 512 tokens: a value a token, scores of 8 heads, and a table.
class Attention : public StreamMaker {
 public:
  static constexpr Bytes kTokens = 4 * 512 * 1024;
  static constexpr Bytes kScores = 4 * 8 * 512 * 512 * 4;
  static constexpr Bytes kFixed =
      2 * kMiB;  // no remainder of a segment is 1 MiB, which would stay with a block

  Attention() {
    stream().facts.inputs = {{"input_ids", {4, 512}, "int64"}};
    Law(Allocate(Site(1, Phase::kForward, "attention"), kTokens), kTokens / 4);
    const RequestId scores = Allocate(Site(2, Phase::kForward, "attention"), kScores);
    Law(scores, kScores / 4);
    stream()[scores].autograd_number = 2;
    Allocate(Site(3, Phase::kForward, "table"), kFixed);
    const RequestId gradient = Allocate(Site(4, Phase::kBackward, "attention"), kScores);
    Law(gradient, kScores / 4);
    stream()[gradient].autograd_number = 1;
    stream().sites.back().operator_name = "SoftmaxBackward0";
    EndStep();
  }

 private:
  void Law(RequestId id, Bytes slope) {
    stream()[id].law = {.slope = static_cast<int64_t>(slope), .basis = LawBasis::kRule};
  }
};

TEST(SequenceLengthTest, ScoresShrinkWithItsSquare) {
  Attention run;
  EXPECT_EQ(ReplayOf(run.stream()).allocated.bytes,
            Attention::kTokens + 2 * Attention::kScores + Attention::kFixed);
  const Stream half = std::get<Stream>(Apply(run.stream(), "sequence-length"));
  EXPECT_EQ(ReplayOf(half).allocated.bytes,
            Attention::kTokens / 2 + 2 * Attention::kScores / 4 + Attention::kFixed);
  const Stream twice = std::get<Stream>(Apply(run.stream(), "sequence-length:length=1024"));
  EXPECT_EQ(ReplayOf(twice).allocated.bytes,
            2 * Attention::kTokens + 2 * 4 * Attention::kScores + Attention::kFixed);
  // Both laws stay laws of the batch.
  EXPECT_EQ(ReplayOf(AtBatch(half, 8)).allocated.bytes,
            Attention::kTokens + Attention::kScores + Attention::kFixed);
}

TEST(SequenceLengthTest, SaysWhyItCannotBe) {
  Attention run;
  EXPECT_EQ(std::get<std::string>(Apply(run.stream(), "sequence-length:length=512")),
            "sequence-length cannot be applied: the run's sequences have 512 tokens already");
  run.stream().facts.inputs = {{"pixel_values", {4, 3, 224, 224}, "float32"}};
  EXPECT_EQ(std::get<std::string>(Apply(run.stream(), "sequence-length")),
            "sequence-length cannot be applied: no input of the model is a matrix of tokens");
}

}  // namespace
}  // namespace vramtrace::forecast
