// How gradients are cleared and gathered, on a run of one weight and one activation.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/forecast_technique_model.h"

namespace vramtrace::forecast {
namespace {

using testing::Apply;
using testing::kMiB;
using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kParameter = 8 * kMiB;
constexpr Bytes kSample = 2 * kMiB;  // of the activation, a sample
constexpr uint64_t kBatch = 4;
constexpr Bytes kActivation = kBatch * kSample;
constexpr Bytes kInStep = 2 * kMiB;  // the optimizer's temporary

enum class Clearing { kAfterStep, kZeros, kBeforeBackward };

class Training : public StreamMaker {
 public:
  explicit Training(Clearing clearing, int steps = 4) : StreamMaker(kBatch) {
    stream().facts.optimizers = {"AdamW"};
    stream().parameters = {{"w", "net", kParameter, 4, "float32", {2048, 1024}, true}};
    Own(Allocate(Site(1, Phase::kLoad, "net"), kParameter, MemoryClass::kWeight));
    RequestId gradient = RequestId::kNone;
    for (int step = 0; step < steps; ++step) {
      const RequestId activation = Allocate(Site(2, Phase::kForward, "net"), kActivation);
      stream()[activation].law = {.slope = static_cast<int64_t>(kSample), .basis = LawBasis::kMeasured};
      stream()[activation].autograd_number = 2;
      if (clearing == Clearing::kBeforeBackward && step > 0) Clear(&gradient);
      const bool kept = gradient != RequestId::kNone;
      const RequestId made = Allocate(Site(3, Phase::kBackward, "net"), kParameter,
                                      kept ? MemoryClass::kTemporary : MemoryClass::kGradient);
      stream()[made].autograd_number = 1;
      Free(activation);
      if (kept) {
        Free(made);
      } else {
        gradient = Own(made);
      }
      Free(Allocate(Site(4, Phase::kOptimizer), kInStep, MemoryClass::kTemporary));
      EndStep();
      if (clearing == Clearing::kAfterStep) Clear(&gradient);
    }
  }

 private:
  RequestId Own(RequestId id) {
    stream()[id].parameter = ParameterId{0};
    return id;
  }
  void Clear(RequestId* gradient) {
    stream().events.push_back({EventKind::kFree, Phase::kZeroGrad, *gradient});
    *gradient = RequestId::kNone;
  }
};

Bytes PeakOf(const Stream& stream) { return ReplayOf(stream).allocated.bytes; }

TEST(SetToNoneTest, GradientsAreGoneBeforeTheNextForward) {
  constexpr Bytes kBest = kParameter + kActivation + kParameter;  // weight, activation, gradient
  Training kept(Clearing::kZeros);
  EXPECT_EQ(PeakOf(kept.stream()), kBest + kParameter);
  EXPECT_EQ(PeakOf(std::get<Stream>(Apply(kept.stream(), "set-to-none"))), kBest);

  // Of one step, the gradient is there through the next forward, and goes before a new one is made.
  Training late(Clearing::kBeforeBackward);
  const Stream edited = std::get<Stream>(Apply(late.stream(), "set-to-none"));
  EXPECT_EQ(PeakOf(edited), kBest);
  EXPECT_TRUE(FindTechnique("set-to-none")->is_on(edited));
}

TEST(SetToNoneTest, IsOnWhereNoGradientWaitsThroughAForward) {
  const Technique* technique = FindTechnique("set-to-none");
  EXPECT_TRUE(technique->is_on(Training(Clearing::kAfterStep).stream()));
  EXPECT_FALSE(technique->is_on(Training(Clearing::kZeros).stream()));
  EXPECT_FALSE(technique->is_on(Training(Clearing::kBeforeBackward).stream()));
}

TEST(SetToNoneTest, NeedsGradientsAndAStep) {
  EXPECT_EQ(std::get<std::string>(Apply(Stream{}, "set-to-none")),
            "set-to-none cannot be applied: no gradient is named in the trace");
}

TEST(BucketViewTest, GradientsAreGoneWithTheirNode) {
  Training training(Clearing::kAfterStep);
  EXPECT_EQ(std::get<std::string>(Apply(training.stream(), "ddp-bucket-view")),
            "ddp-bucket-view cannot be applied: the model is not wrapped in DistributedDataParallel");
  training.stream().modules = {{"", "DistributedDataParallel"}, {"module", "Net"}};
  EXPECT_FALSE(FindTechnique("ddp-bucket-view")->is_on(training.stream()));
  const Stream edited = std::get<Stream>(Apply(training.stream(), "ddp-bucket-view"));
  // The bucket itself is none of this run's requests: a gradient is there while its node runs.
  EXPECT_EQ(PeakOf(edited), 2 * kParameter + kActivation);
  const auto at_step = std::find_if(edited.events.begin(), edited.events.end(), [](const Event& event) {
    return event.phase == Phase::kOptimizer && event.kind == EventKind::kAllocate;
  });
  ASSERT_NE(at_step, edited.events.end());
  Bytes alive = 0;
  for (auto event = edited.events.begin(); event != at_step; ++event) {
    const Bytes bytes = edited[event->request].bytes;
    alive += event->kind == EventKind::kAllocate ? bytes : 0 - bytes;
  }
  EXPECT_EQ(alive, kParameter);
  EXPECT_TRUE(FindTechnique("ddp-bucket-view")->is_on(edited));
}

TEST(GradientAccumulationTest, GathersMicroBatches) {
  Training training(Clearing::kAfterStep);
  EXPECT_EQ(PeakOf(training.stream()), 2 * kParameter + kActivation);
  for (const uint64_t steps : {uint64_t{2}, uint64_t{4}}) {
    const Stream edited =
        std::get<Stream>(Apply(training.stream(), "gradient-accumulation:steps=" + std::to_string(steps)));
    // From the second micro-batch on a gradient is there, and the next one is added to it.
    EXPECT_EQ(PeakOf(edited), 3 * kParameter + kActivation / steps);
    // The batch stays what the optimizer sees.
    EXPECT_EQ(PeakOf(AtBatch(edited, 3 * kBatch)), 3 * kParameter + 3 * kActivation / steps);
  }
}

TEST(GradientAccumulationTest, SaysWhyItCannotBe) {
  Training training(Clearing::kAfterStep);
  EXPECT_EQ(std::get<std::string>(Apply(training.stream(), "gradient-accumulation:steps=5")),
            "gradient-accumulation cannot be applied: a batch of 4 cannot be divided by 5");
  EXPECT_EQ(std::get<std::string>(Apply(Training(Clearing::kAfterStep, 2).stream(), "gradient-accumulation")),
            "gradient-accumulation cannot be applied: fewer than three optimizer steps were recorded");
}

TEST(GradientAccumulationTest, IsOnWhereAStepHasTwoPasses) {
  Training training(Clearing::kAfterStep);
  EXPECT_FALSE(FindTechnique("gradient-accumulation")->is_on(training.stream()));
  std::vector<Event>& events = training.stream().events;
  const auto end = std::find_if(events.begin(), events.end(),
                                [](const Event& event) { return event.kind == EventKind::kStepEnd; });
  events.erase(end);
  for (Request& request : training.stream().requests) {
    if (request.step > 0) --request.step;
  }
  EXPECT_TRUE(FindTechnique("gradient-accumulation")->is_on(training.stream()));
}

}  // namespace
}  // namespace vramtrace::forecast
