// Cross-entropy in chunks, and attention in one kernel.

#include <gtest/gtest.h>

#include "tests/unit/forecast_technique_model.h"

namespace vramtrace::forecast {
namespace {

using testing::Apply;
using testing::kMiB;
using testing::ReplayOf;
using testing::StreamMaker;

class Nodes : public StreamMaker {
 protected:
  // In forward, by the operator of `node`.
  RequestId Made(uint64_t node, Bytes bytes, const std::string& module = "model") {
    const RequestId id = Allocate(Site(++key_, Phase::kForward, module), bytes);
    stream()[id].autograd_number = node + 1;
    return id;
  }
  RequestId InBackward(uint64_t node, const char* operator_name, Bytes bytes) {
    const SiteId site = Site(++key_, Phase::kBackward, "model");
    stream().sites[static_cast<size_t>(site)].operator_name = operator_name;
    const RequestId id = Allocate(site, bytes);
    stream()[id].autograd_number = node;
    return id;
  }
  void FreeInBackward(RequestId id) { stream().events.push_back({EventKind::kFree, Phase::kBackward, id}); }

 private:
  uint64_t key_ = 0;
};

constexpr Bytes kLogits = 64 * kMiB;

class CrossEntropy : public Nodes {
 public:
  CrossEntropy() {
    const RequestId logits = Made(1, kLogits);
    const RequestId logarithms = Made(2, kLogits);
    Free(logits);
    const RequestId of_loss = InBackward(3, "NllLossBackward0", kLogits);
    const RequestId of_logits = InBackward(2, "LogSoftmaxBackward0", kLogits);
    FreeInBackward(of_loss);
    FreeInBackward(logarithms);
    FreeInBackward(of_logits);
    EndStep();
  }
};

TEST(ChunkedCrossEntropyTest, HoldsTheLogitsAndAChunkOfTheRest) {
  CrossEntropy run;
  EXPECT_EQ(ReplayOf(run.stream()).allocated.bytes, 3 * kLogits);
  for (const uint64_t chunks : {uint64_t{4}, uint64_t{8}}) {
    const Stream edited =
        std::get<Stream>(Apply(run.stream(), "chunked-cross-entropy:chunks=" + std::to_string(chunks)));
    // At the last chunk: the logits, every chunk's gradient, its logarithms and the gradient of those.
    EXPECT_EQ(ReplayOf(edited).allocated.bytes, 2 * kLogits + 2 * kLogits / chunks);
    Bytes alive = 0;
    for (const Event& event : edited.events) {
      if (event.kind == EventKind::kStepEnd) continue;
      const Bytes bytes = edited[event.request].bytes;
      alive += event.kind == EventKind::kAllocate ? bytes : 0 - bytes;
    }
    EXPECT_EQ(alive, 0U) << "all that is made goes";
  }
}

TEST(ChunkedCrossEntropyTest, NeedsALossWithItsBackward) {
  EXPECT_EQ(std::get<std::string>(Apply(Stream{}, "chunked-cross-entropy")),
            "chunked-cross-entropy cannot be applied: no cross-entropy over logits was recorded with its "
            "backward");
}

constexpr Bytes kScores = 32 * kMiB;
constexpr Bytes kResult = 4 * kMiB;
constexpr int64_t kLength = 512;

class EagerAttention : public Nodes {
 public:
  EagerAttention() {
    stream().facts.inputs = {{"input_ids", {4, kLength}, "int64"}};
    const RequestId scores = Made(10, kScores);
    const RequestId softmax = Made(11, kScores);
    Free(scores);
    const RequestId result = Made(12, kResult);
    const RequestId copy = Made(13, kResult);
    Free(result);
    const RequestId of_softmax = InBackward(12, "BmmBackward0", kScores);
    const RequestId of_values = InBackward(12, "BmmBackward0", kResult);
    FreeInBackward(copy);
    const RequestId of_scores = InBackward(11, "SoftmaxBackward0", kScores);
    FreeInBackward(softmax);
    FreeInBackward(of_softmax);
    const RequestId of_queries = InBackward(10, "BmmBackward0", kResult);
    for (const RequestId id : {of_scores, of_values, of_queries}) FreeInBackward(id);
    EndStep();
  }
};

TEST(FusedAttentionTest, MakesNoScores) {
  EagerAttention run;
  EXPECT_EQ(ReplayOf(run.stream()).allocated.bytes, 3 * kScores + kResult);
  const Stream edited = std::get<Stream>(Apply(run.stream(), "sdpa"));
  // The gradients of values and queries, and a number for each row of scores until the softmax's node is
  // through.
  EXPECT_EQ(ReplayOf(edited).allocated.bytes, 2 * kResult + kScores / kLength);
}

TEST(FusedAttentionTest, NeedsProductsAroundASoftmax) {
  EagerAttention run;
  for (vramtrace::forecast::Site& site : run.stream().sites) {
    if (site.operator_name == "BmmBackward0") site.operator_name = "MulBackward0";
  }
  EXPECT_EQ(
      std::get<std::string>(Apply(run.stream(), "sdpa")),
      "sdpa cannot be applied: no eager attention was recorded with its backward: two products around a "
      "softmax");
  run.stream().sites.back().operator_name = "ScaledDotProductFlashAttentionBackward0";
  EXPECT_TRUE(FindTechnique("sdpa")->is_on(run.stream()));
}

}  // namespace
}  // namespace vramtrace::forecast
