// A step that died of memory, finished after the one before it.

#include <gtest/gtest.h>

#include "analyzer/forecast/size_laws.h"
#include "analyzer/forecast/unfinished_step.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kMiB = allocator::kMiB;

// Steps of two layers; gradients of a step are freed in the next one. `die`: in the second layer's forward.
Stream Recorded(const std::vector<uint64_t>& batches, bool die, uint64_t other_site = 0) {
  StreamMaker maker(batches.back());
  maker.Allocate(maker.Site(1, Phase::kLoad), 20 * kMiB, MemoryClass::kWeight);
  RequestId gradient = RequestId::kNone;
  bool state = false;
  for (size_t i = 0; i < batches.size(); ++i) {
    const bool last = i + 1 == batches.size();
    const Bytes size = batches[i] * kMiB;
    const RequestId first = maker.Allocate(maker.Site(2 + (last ? other_site : 0), Phase::kForward), size);
    if (gradient != RequestId::kNone) maker.Free(gradient);
    if (last && die) {
      maker.Allocate(maker.Site(99, Phase::kForward), size);  // refused
      break;
    }
    const RequestId second = maker.Allocate(maker.Site(3, Phase::kForward), size);
    const RequestId temporary = maker.Allocate(maker.Site(4, Phase::kBackward), 2 * size);
    gradient = maker.Allocate(maker.Site(5, Phase::kBackward), 20 * kMiB, MemoryClass::kGradient);
    for (const RequestId id : {temporary, second, first}) maker.Free(id);
    if (!state) maker.Allocate(maker.Site(6, Phase::kOptimizer), 40 * kMiB, MemoryClass::kOptimizerState);
    state = true;
    maker.EndStep();
  }
  Stream stream = maker.stream();
  SetLawsByRule(&stream);
  return stream;
}

TEST(UnfinishedStepTest, TheRestComesFromTheStepBefore) {
  for (const std::vector<uint64_t>& batches :
       std::vector<std::vector<uint64_t>>{{16, 16, 16}, {16, 16, 24}, {16, 16, 32}, {16, 16}, {16, 64}}) {
    const uint64_t batch = batches.back();
    Stream died = Recorded(batches, true);
    ASSERT_TRUE(FinishStep(&died));
    const Outcome truth = ReplayOf(Recorded(batches, false));
    const Outcome finished = ReplayOf(died);
    EXPECT_EQ(finished.allocated.bytes, truth.allocated.bytes) << batch;
    EXPECT_EQ(finished.reserved.bytes, truth.reserved.bytes) << batch;
    EXPECT_EQ(finished.step_peaks, truth.step_peaks) << batch;
  }
}

TEST(UnfinishedStepTest, NeedsAWholeStepOfTheSameKind) {
  Stream alone = Recorded({16}, true);
  EXPECT_FALSE(FinishStep(&alone));
  Stream other = Recorded({16, 16, 16}, true, 40);
  EXPECT_FALSE(FinishStep(&other));
}

}  // namespace
}  // namespace vramtrace::forecast
