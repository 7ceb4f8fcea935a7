// Other optimizers, on a run of AdamW over two parameters whose sizes tell them apart.

#include <gtest/gtest.h>

#include "analyzer/forecast/technique.h"
#include "analyzer/forecast/techniques/optimizer_edit.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kMiB = 1 << 20;
constexpr Bytes kFirst = 64 * kMiB;   // a matrix of 4096 x 4096
constexpr Bytes kSecond = 16 * kMiB;  // a vector
constexpr Bytes kAll = kFirst + kSecond;

// Two steps of forward, backward, AdamW with its foreach list, zero_grad.
class AdamRun : public StreamMaker {
 public:
  AdamRun() {
    stream().facts.optimizers = {"AdamW"};
    stream().parameters = {{"w", "", kFirst, 4, "float32", {4096, 4096}, true},
                           {"v", "", kSecond, 4, "float32", {4096 * 1024}, true}};
    stream().state_keys = {"", "exp_avg", "exp_avg_sq"};
    for (uint32_t p = 0; p < 2; ++p) Own(Site(1, Phase::kLoad), p, MemoryClass::kWeight);
    for (int step = 0; step < 2; ++step) {
      const RequestId activation = Allocate(Site(2, Phase::kForward), 4 * kMiB);
      std::vector<RequestId> gradients;
      for (uint32_t p = 2; p-- > 0;) {
        gradients.push_back(Own(Site(3, Phase::kBackward), p, MemoryClass::kGradient));
        stream()[gradients.back()].autograd_number = 5 + p;
      }
      Free(activation);
      for (uint32_t p = 0; step == 0 && p < 2; ++p) {
        for (uint16_t key = 1; key <= 2; ++key) {
          const RequestId id = Own(Site(4, Phase::kOptimizer), p, MemoryClass::kOptimizerState);
          stream()[id].state_key = key;
        }
      }
      const RequestId first = Allocate(Site(5, Phase::kOptimizer), kFirst, MemoryClass::kTemporary);
      const RequestId second = Allocate(Site(5, Phase::kOptimizer), kSecond, MemoryClass::kTemporary);
      Free(first);
      Free(second);
      for (const RequestId id : gradients) {
        stream().events.push_back({EventKind::kFree, Phase::kZeroGrad, id});
      }
      EndStep();
    }
  }

 private:
  RequestId Own(SiteId site, uint32_t parameter, MemoryClass memory_class) {
    const RequestId id = Allocate(site, stream().parameters[parameter].bytes, memory_class);
    stream()[id].parameter = ParameterId{parameter};
    return id;
  }
};

Edited Apply(const Stream& stream, std::string_view text) {
  const Chosen chosen = std::get<Chosen>(ParseTechnique(text));
  const auto result = ApplyTechniques(stream, {&chosen, 1});
  if (const auto* why = std::get_if<std::string>(&result)) return *why;
  return std::get<Stream>(result);
}

Bytes PeakWith(std::string_view text) {
  const AdamRun run;
  return ReplayOf(std::get<Stream>(Apply(const_cast<AdamRun&>(run).stream(), text))).allocated.bytes;
}

TEST(OptimizerPlacesTest, AreBeforeTheStepAndItsZeroGrad) {
  AdamRun run;
  const auto places = OptimizerPlaces(run.stream());
  ASSERT_EQ(places.size(), 2U);
  EXPECT_TRUE(places[0].first);
  EXPECT_FALSE(places[1].first);
  for (const OptimizerPlace& at : places) {
    EXPECT_EQ(run.stream().events[at.place].phase, Phase::kOptimizer);
    EXPECT_EQ(run.stream().events[at.place - 1].phase, Phase::kForward);  // the activation's free
  }
}

TEST(OptimizersTest, TakeWhatTheirSourceSays) {
  // Weights, gradients, two moments, and the list of square roots.
  EXPECT_EQ(ReplayOf(AdamRun().stream()).allocated.bytes, 5 * kAll);
  // Two temporaries of the first parameter; of the second, its own two and what the first left behind.
  EXPECT_EQ(PeakWith("foreach-off"), 4 * kAll + 2 * kFirst);
  EXPECT_EQ(PeakWith("fused"), 4 * kAll + 2 * 512 + 4 * kMiB);
  EXPECT_EQ(PeakWith("sgd"), 2 * kAll + 4 * kMiB);
  EXPECT_EQ(PeakWith("lion"), 3 * kAll + 2 * kFirst);
  // A byte an element and moment, an absmax of 4 bytes a block of 256, two tables.
  const Bytes quantised = 2 * (kAll / 4 + kAll / 4 / 256 * 4) + 2 * 1024;
  EXPECT_EQ(PeakWith("adamw-8bit"), 2 * kAll + quantised + 4 * kMiB);
  EXPECT_EQ(PeakWith("paged-8bit"), 2 * kAll + 2 * kAll / 4 / 256 * 4 + 2 * 1024 + 4 * kMiB);
  // Sums of rows and columns of the matrix, twice (kept and new), and twice the matrix to make them; what
  // comes after (one matrix and the vector's three) is less.
  const Bytes sums = 2 * 4096 * 4;
  EXPECT_EQ(PeakWith("adafactor"), 2 * kAll + kSecond + 2 * sums + 2 * kFirst);
}

TEST(OptimizersTest, InBackwardHoldsOneGradient) {
  // The matrix's gradient and its square root, beside weights and moments.
  EXPECT_EQ(PeakWith("optimizer-in-backward"), 3 * kAll + 2 * kFirst);
}

TEST(OptimizersTest, AreRefusedWithTheReason) {
  AdamRun run;
  run.stream().facts.optimizers = {"RMSprop"};
  EXPECT_EQ(std::get<std::string>(Apply(run.stream(), "fused")),
            "fused cannot be applied: the optimizer is neither torch.optim.Adam nor AdamW");
  EXPECT_EQ(std::get<std::string>(Apply(Stream{}, "lion")),
            "lion cannot be applied: no optimizer step was completed");
}

TEST(OptimizersTest, AreOnAfterTheyWereApplied) {
  for (const char* key : {"foreach-off", "fused", "sgd", "adafactor", "adamw-8bit", "paged-8bit", "lion"}) {
    AdamRun run;
    EXPECT_FALSE(FindTechnique(key)->is_on(run.stream())) << key;
    EXPECT_TRUE(FindTechnique(key)->is_on(std::get<Stream>(Apply(run.stream(), key)))) << key;
  }
}

}  // namespace
}  // namespace vramtrace::forecast
