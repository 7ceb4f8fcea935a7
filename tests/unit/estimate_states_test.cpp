// Bytes that stay: every optimizer, and who shares what.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "analyzer/estimate/states.h"
#include "tests/unit/estimate_files.h"

namespace vramtrace::estimate {
namespace {

Tape SevenBillion(const Request& request) {
  TapeOptions options;
  options.sequence = 16;
  options.weights = request.precision == Precision::kAutocast ? Dtype::kFp32 : request.weights;
  trace::Result<Tape> tape = WriteTape(SizedModel("7b"), options);
  EXPECT_TRUE(tape.ok());
  return std::move(tape.value());
}

double StateBytesAParameter(const std::string& optimizer, Dtype weights = Dtype::kBf16) {
  Request request{.weights = weights, .optimizer = optimizer};
  const Tape tape = SevenBillion(request);
  return static_cast<double>(StatesOf(tape, request).optimizer) / static_cast<double>(tape.ParameterCount());
}

TEST(Optimizers, EachHasTheBytesItIsKnownFor) {
  // Bytes a parameter with BF16 weights, and where they come from (facts: bytes per parameter).
  const std::map<std::string, double> expected = {
      {"adamw", 4},
      {"adamw-fused", 4},
      {"adamw-8bit", 2 + 8.0 / 256},
      {"paged-adamw-8bit", 0},
      {"adamw-4bit", 1 + 8.0 / 128},
      {"adafactor", 0.0015},
      {"sgd", 0},
      {"sgd-momentum", 2},
      {"lion", 2},
      {"muon", 2 * 0.961 + 4 * 0.039},
      // Rank 128: 32 layers x (4 x 1,572,864 + 3 x 3,342,336) elements of 2 bytes, AdamW for 262 million of
      // the rest.
      {"galore-adamw", 0.311},
      // The projections (117 million elements) in 2 bytes, the moments and AdamW's in 1 and a scale a block.
      {"galore-adamw-8bit", 0.175},
  };
  for (const Optimizer& row : Optimizers()) {
    const auto found = expected.find(std::string(row.name));
    ASSERT_NE(found, expected.end()) << row.name << " has no case";
    EXPECT_NEAR(StateBytesAParameter(found->first), found->second, 0.01 + 0.03 * found->second) << row.name;
    EXPECT_FALSE(row.source.empty());
  }
  EXPECT_EQ(expected.size(), Optimizers().size());
}

TEST(Optimizers, GaloreAsItsPaperCounts) {
  // m = n = 4096, r = 1024: 12.6 million elements instead of 33.6.
  const Parameter matrix{.elements = 4096 * 4096, .whole = 4096 * 4096, .rows = 4096, .columns = 4096};
  Request request{.galore_rank = 1024};
  EXPECT_EQ(FindOptimizer("galore-adamw")->state(matrix, Dtype::kFp32, request), 4u * 12'582'912);
}

TEST(Optimizers, TheStepOfAdamWTakesOneListMore) {
  Request request{.weights = Dtype::kFp32};
  const Tape tape = SevenBillion(request);
  EXPECT_EQ(StatesOf(tape, request).step_temporary, 4 * tape.ParameterCount());
  request.foreach = false;
  EXPECT_EQ(StatesOf(tape, request).step_temporary, 4u * 32000 * 4096);
  request.optimizer = "adamw-fused";
  EXPECT_EQ(StatesOf(tape, request).step_temporary, 0u);
}

TEST(Nf4, IsFourAndAHalfBitsOrFourPointOneTwoSeven) {
  constexpr uint64_t kWeights = 1 << 24;
  EXPECT_EQ(Nf4Bytes(kWeights, false), kWeights / 2 + kWeights / 64 * 4);
  EXPECT_NEAR(static_cast<double>(Nf4Bytes(kWeights, true)) * 8 / kWeights, 4.127, 0.001);
}

// Bases in GB as QLoRA's arithmetic gives them: linear layers in NF4 with double quantisation, the rest in 16
// bits.
TEST(Nf4, BasesOfKnownModels) {
  const std::map<std::string, double> bases = {{"7b", 3.87}, {"13b", 7.20}, {"8b", 5.70}, {"70b", 39.5}};
  for (const auto& [size, gigabytes] : bases) {
    const Estimate estimate =
        EstimateOf(SizedModel(size), {.method = Method::kQlora, .sequence = 16, .rank = 1});
    EXPECT_NEAR(Gb(estimate.phases[0].memory[Class::kWeight]), gigabytes, 0.05 + 0.005 * gigabytes) << size;
  }
}

TEST(Adapters, AreRankTimesInPlusOut) {
  const auto count = [](const std::string& size, uint64_t rank, const std::string& targets) {
    return EstimateOf(SizedModel(size),
                      {.method = Method::kLora, .sequence = 16, .rank = rank, .targets = targets})
        .adapters;
  };
  EXPECT_EQ(count("7b", 16, "all"), 39'976'960u);
  EXPECT_EQ(count("8b", 16, "all"), 41'943'040u);
  EXPECT_EQ(count("3b", 32, "qv"), 9'175'040u);  // as peft counts it in its benchmark
}

// ZeRO, arXiv 1910.02054, figure 1: 7.5 billion parameters on 64 cards.
TEST(Sharding, IsTheZeroPapersTable) {
  const auto bytes = [](Shard shard) {
    Request request{.sequence = 16,
                    .precision = Precision::kMaster,
                    .data_parallel = 64,
                    .shard = shard,
                    .bucket_views = true};
    const Tape tape = SevenBillion(request);
    const States states = StatesOf(tape, request);
    const auto gradients =
        static_cast<double>(2 * tape.ParameterCount()) / (shard >= Shard::kGradients ? 64 : 1);
    return (static_cast<double>(states.weights + states.optimizer) + gradients) /
           static_cast<double>(tape.ParameterCount()) * 7.5;
  };
  EXPECT_NEAR(bytes(Shard::kNothing), 120, 0.1);
  EXPECT_NEAR(bytes(Shard::kOptimizer), 31.4, 0.1);
  EXPECT_NEAR(bytes(Shard::kGradients), 16.6, 0.1);
  EXPECT_NEAR(bytes(Shard::kParameters), 1.9, 0.1);
}

TEST(Sharding, DdpCopiesTheGradients) {
  Request request{.sequence = 16, .weights = Dtype::kFp32, .data_parallel = 2, .shard = Shard::kNothing};
  const Tape tape = SevenBillion(request);
  EXPECT_EQ(StatesOf(tape, request).buckets, 4 * tape.ParameterCount());
  request.bucket_views = true;
  EXPECT_EQ(StatesOf(tape, request).buckets, 0u);
}

TEST(Parallel, TensorsAndStagesDivideTheWeights) {
  const auto weights = [](uint64_t tensor, uint64_t stages) {
    return Gib(
        EstimateOf(
            SizedModel("70b"),
            {.method = Method::kInference, .sequence = 128, .tensor_parallel = tensor, .pipeline = stages})
            .phases[0]
            .memory[Class::kWeight]);
  };
  EXPECT_NEAR(weights(1, 1), 131.4, 0.1);
  EXPECT_NEAR(weights(4, 1), 131.4 / 4, 0.1);
  EXPECT_NEAR(weights(1, 4), 131.4 / 4, 1.5) << "the fullest stage has a table or the head too";
}

TEST(Parallel, SequencesShareWhatTensorsDoNot) {
  // Korthikanti, arXiv 2205.05198: without sequence parallelism the residual stream and the norms are on
  // every card.
  const auto activations = [](bool sequence) {
    return EstimateOf(SizedModel("7b"), {.batch = 1,
                                         .sequence = 2048,
                                         .fused_loss = true,
                                         .tensor_parallel = 8,
                                         .sequence_parallel = sequence})
        .phases[1]
        .memory[Class::kActivation];
  };
  const double whole = 32 * 2048.0 * (24 * 4096 + 8 * 11008);
  EXPECT_NEAR(static_cast<double>(activations(true)), whole / 8, 0.1 * whole / 8);
  EXPECT_GT(activations(false), 2 * activations(true));
}

TEST(Parallel, TheFirstStageKeepsTheMostMicroBatches) {
  const auto peak = [](uint64_t micro_batches) {
    return EstimateOf(SizedModel("7b"), {.sequence = 2048, .pipeline = 4, .micro_batches = micro_batches})
        .phases[1]
        .memory[Class::kActivation];
  };
  EXPECT_GT(peak(4), peak(1));
  EXPECT_EQ(peak(4), peak(16)) << "one forward, one backward: never more than stages";
}

}  // namespace
}  // namespace vramtrace::estimate
