// Repeated blocks and recomputing them, on a model of three blocks whose every size is a power of two.

#include <gtest/gtest.h>

#include "analyzer/forecast/technique.h"
#include "analyzer/forecast/techniques/blocks.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kMiB = 1 << 20;
constexpr Bytes kSaved = 64 * kMiB;  // an activation inside of a block
constexpr Bytes kOutput = 8 * kMiB;  // what a block hands on
constexpr uint32_t kBlocks = 3;

// One step of a model of three blocks: each saves one activation inside, has a temporary, and returns an
// output that the next block saves. In backward each block needs 2 MiB for a moment.
class BlockModel : public StreamMaker {
 public:
  BlockModel() {
    for (uint32_t b = 0; b < kBlocks; ++b) {
      stream().modules.push_back({Path(b), "Block"});
      stream().modules.push_back({Path(b) + ".inner", "Linear"});
    }
    std::vector<RequestId> saved;
    std::vector<RequestId> outputs;
    uint64_t number = 1;
    for (uint32_t b = 0; b < kBlocks; ++b) {
      saved.push_back(Numbered(Site(10 + b, Phase::kForward, Path(b) + ".inner"), kSaved, ++number));
      const RequestId temporary = Numbered(Site(20 + b, Phase::kForward, Path(b) + ".inner"), kMiB, number);
      outputs.push_back(Numbered(Site(30 + b, Phase::kForward, Path(b)), kOutput, ++number));
      Free(temporary);
    }
    const RequestId loss = Allocate(Site(40, Phase::kScript), 512);
    for (uint32_t b = kBlocks; b-- > 0;) {
      const RequestId gradient = Numbered(Site(50 + b, Phase::kBackward, Path(b)), 2 * kMiB, 2 * b + 1);
      Free(saved[b]);
      Free(gradient);
      Free(outputs[b]);
    }
    Free(loss);
    EndStep();
  }

  static std::string Path(uint32_t block) { return "model.layers." + std::to_string(block); }

 private:
  RequestId Numbered(SiteId site, Bytes bytes, uint64_t number) {
    const RequestId id = Allocate(site, bytes);
    stream()[id].autograd_number = number;
    return id;
  }
};

Stream With(const Stream& stream, std::string_view text) {
  const Chosen chosen = std::get<Chosen>(ParseTechnique(text));
  const auto result = ApplyTechniques(stream, {&chosen, 1});
  EXPECT_TRUE(std::holds_alternative<Stream>(result)) << std::get<std::string>(result);
  return std::get<Stream>(result);
}

TEST(RepeatedBlocksTest, AreTheOutermostNumberedSiblingsOfOneClass) {
  Stream stream;
  for (const auto& [path, name] : {std::pair{"layer1", "Sequential"},
                                   {"layer1.0", "Bottleneck"},
                                   {"layer1.0.conv1", "Conv2d"},
                                   {"layer1.1", "Bottleneck"},
                                   {"layer1.1.conv1", "Conv2d"},
                                   {"layer2", "Sequential"},
                                   {"layer2.0", "Bottleneck"},
                                   {"layer2.0.conv1", "Conv2d"},
                                   {"layer2.1", "Other"},
                                   {"layer2.1.conv1", "Conv2d"},
                                   {"head.0", "Linear"},
                                   {"head.1", "Linear"}}) {
    stream.modules.push_back({path, name});
  }
  EXPECT_EQ(RepeatedBlocks(stream), (std::vector<std::string>{"layer1.0", "layer1.1"}));
}

TEST(RepeatedBlocksTest, NumbersMayEndAName) {
  Stream stream;
  for (const char* path : {"encoder.layer_0", "encoder.layer_1"}) {
    stream.modules.push_back({path, "EncoderBlock"});
    stream.modules.push_back({std::string(path) + ".mlp", "MLP"});
  }
  EXPECT_EQ(RepeatedBlocks(stream), (std::vector<std::string>{"encoder.layer_0", "encoder.layer_1"}));
}

TEST(WindowsTest, KnowTheirForwardAndTheirBackward) {
  BlockModel model;
  const auto windows = FindWindows(model.stream(), RepeatedBlocks(model.stream()));
  ASSERT_EQ(windows.size(), kBlocks);
  for (uint32_t b = 0; b < kBlocks; ++b) {
    EXPECT_EQ(windows[b].block, b);
    EXPECT_EQ(windows[b].requests.size(), 3U);
    EXPECT_EQ(model.stream()[windows[b].output].bytes, kOutput);
    EXPECT_NE(windows[b].backward_begin, Span::kOpen);
    EXPECT_GE(windows[b].backward_end, windows[b].backward_begin);
  }
  EXPECT_LT(windows[2].backward_end, windows[1].backward_begin);
}

TEST(CheckpointingTest, KeepsOutputsAndOneBlockAtATime) {
  BlockModel model;
  EXPECT_EQ(ReplayOf(model.stream()).allocated.bytes, kBlocks * (kSaved + kOutput) + 2 * kMiB + 512);
  const Stream edited = With(model.stream(), "checkpointing");
  // When the last block is recomputed: every output, the loss, what the block saves, its gradient.
  EXPECT_EQ(ReplayOf(edited).allocated.bytes, kBlocks * kOutput + kSaved + 2 * kMiB + 512);
}

TEST(CheckpointingTest, EverySecondBlockKeepsTheOthers) {
  BlockModel model;
  const Stream edited = With(model.stream(), "checkpointing:every=2");
  EXPECT_EQ(ReplayOf(edited).allocated.bytes, kBlocks * kOutput + 2 * kSaved + 2 * kMiB + 512);
}

// Sites 50 to 52 are those of the blocks' nodes in backward.
Stream WithNodes(BlockModel* model, const char* operator_name) {
  for (vramtrace::forecast::Site& site : model->stream().sites) {
    if (site.key >= 50 && site.key < 50 + kBlocks) site.operator_name = operator_name;
  }
  return With(model->stream(), "selective-checkpointing");
}

TEST(SelectiveCheckpointingTest, KeepsWhatProductsAndAttentionReturn) {
  for (const char* kept : {"AddmmBackward0", "ScaledDotProductFlashAttentionBackward0"}) {
    BlockModel model;
    // The temporary lives until the output is there: to the forward it is one more result of the node.
    EXPECT_GE(ReplayOf(WithNodes(&model, kept)).allocated.bytes,
              kBlocks * (kSaved + kOutput) + 2 * kMiB + 512)
        << kept;
  }
  for (const char* again : {"GeluBackward0", "BmmBackward0", "SoftmaxBackward0"}) {
    BlockModel model;
    const Stream edited = WithNodes(&model, again);
    EXPECT_EQ(ReplayOf(edited).allocated.bytes,
              ReplayOf(With(model.stream(), "checkpointing")).allocated.bytes)
        << again;
  }
}

TEST(CheckpointingTest, FreesWhatItMakes) {
  BlockModel model;
  const Stream edited = With(model.stream(), "checkpointing");
  std::vector<int> alive(edited.requests.size());
  for (const Event& event : edited.events) {
    if (event.kind == EventKind::kStepEnd) continue;
    int& count = alive[static_cast<size_t>(event.request)];
    count += event.kind == EventKind::kAllocate ? 1 : -1;
    ASSERT_TRUE(count == 0 || count == 1);
  }
  EXPECT_EQ(alive, std::vector<int>(edited.requests.size()));
}

TEST(CheckpointingTest, IsRefusedWithoutABackwardPass) {
  BlockModel model;
  for (Request& request : model.stream().requests) request.autograd_number = 0;
  const Chosen chosen = std::get<Chosen>(ParseTechnique("checkpointing"));
  const auto result = ApplyTechniques(model.stream(), {&chosen, 1});
  ASSERT_TRUE(std::holds_alternative<std::string>(result));
  EXPECT_EQ(std::get<std::string>(result),
            "checkpointing cannot be applied: no backward pass of a repeated block was recorded");
}

TEST(CheckpointingTest, IsOnWhereSomethingIsRecomputed) {
  BlockModel model;
  const Technique* technique = FindTechnique("checkpointing");
  EXPECT_FALSE(technique->is_on(model.stream()));
  model.stream().sites[0].phase = Phase::kRecompute;
  EXPECT_TRUE(technique->is_on(model.stream()));
}

}  // namespace
}  // namespace vramtrace::forecast
