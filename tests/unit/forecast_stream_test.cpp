// Laws, edits, repeated steps and the replay of a stream.

#include <gtest/gtest.h>

#include "analyzer/forecast/repeated_steps.h"
#include "analyzer/forecast/size_laws.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kMiB = allocator::kMiB;

TEST(SizeLawTest, IsAFractionRoundedUp) {
  const SizeLaw law{.fixed = 10, .slope = 3, .square = 0, .divisor = 4, .basis = LawBasis::kMeasured};
  EXPECT_EQ(law.At(2), 4U);  // 16 / 4
  EXPECT_EQ(law.At(3), 5U);  // 19 / 4
  EXPECT_EQ(law.Times(1, 2).At(3), 3U);
  EXPECT_EQ(SizeLaw::Fixed(7).At(1000), 7U);
}

TEST(SizeLawTest, NeitherFallsBelowZeroNorOverflows) {
  EXPECT_EQ((SizeLaw{-100, 1, 0, 1, LawBasis::kMeasured}).At(2), 0U);
  EXPECT_EQ((SizeLaw{0, INT64_MAX, INT64_MAX, 1, LawBasis::kRule}).At(UINT64_MAX), Bytes{1} << 62);
  EXPECT_EQ((SizeLaw{5, 5, 0, 0, LawBasis::kRule}).At(1), 10U);  // a divisor of 0 is none
}

TEST(PathTest, BelowIsByWholeNames) {
  EXPECT_TRUE(IsBelow("h.1.mlp", "h.1"));
  EXPECT_TRUE(IsBelow("h.1", "h.1"));
  EXPECT_FALSE(IsBelow("h.11", "h.1"));
  EXPECT_TRUE(IsBelow("anything", ""));
}

TEST(EditTest, InsertsMovesRemovesAndScales) {
  StreamMaker maker;
  const SiteId site = maker.Site(1, Phase::kForward);
  const RequestId a = maker.Allocate(site, 10 * kMiB);  // event 0
  const RequestId b = maker.Allocate(site, 20 * kMiB);  // event 1
  maker.Free(a);                                        // event 2
  maker.Free(b);                                        // event 3
  Edit edit(maker.stream());
  EXPECT_EQ(edit.SpanOf(b).allocated, 1U);
  EXPECT_EQ(edit.SpanOf(b).freed, 3U);
  edit.FreeAfter(a, 0);
  edit.Scale(b, 1, 2);
  Request more;
  more.bytes = 4 * kMiB;
  more.site = site;
  const RequestId c = edit.AllocateBefore(3, more);
  edit.FreeAfter(c, Span::kOpen);
  const Stream edited = std::move(edit).Finish();
  const std::vector<Span> spans = SpansOf(edited);
  EXPECT_EQ(spans[0].freed, 1U);
  EXPECT_EQ(edited[b].bytes, 10 * kMiB);
  EXPECT_EQ(edited[b].law.At(99), 10 * kMiB);
  EXPECT_EQ(spans[static_cast<size_t>(c)].allocated, 3U);
  EXPECT_EQ(spans[static_cast<size_t>(c)].freed, Span::kOpen);
  EXPECT_EQ(edited.events.size(), 5U);

  Edit remove(edited);
  remove.Remove(b);
  EXPECT_EQ(std::move(remove).Finish().events.size(), 3U);
}

TEST(RuleOfOneTest, OnlySamplesScale) {
  StreamMaker maker(4);
  Stream& stream = maker.stream();
  stream.parameters.push_back({"fc.weight", "fc", 4 * kMiB, 4, "float32", {1024, 1024}, true});
  const SiteId forward = maker.Site(1, Phase::kForward, "fc");
  const SiteId backward = maker.Site(2, Phase::kBackward, "fc");
  const SiteId optimizer = maker.Site(3, Phase::kOptimizer);
  const RequestId weight = maker.Allocate(maker.Site(4, Phase::kLoad), 4 * kMiB, MemoryClass::kWeight);
  const RequestId saved = maker.Allocate(forward, 8 * kMiB);
  const RequestId alike = maker.Allocate(forward, 4 * kMiB);  // an activation that happens to be of that size
  const RequestId odd = maker.Allocate(forward, 4 * kMiB + 1);
  const RequestId scalar = maker.Allocate(forward, 4);
  // Unnamed: a gradient of the weight where no result of the forward has its size, else of that result.
  stream.parameters.push_back({"out.weight", "out", 4 * kMiB, 4, "float32", {1024, 1024}, true});
  const RequestId gradient =
      maker.Allocate(maker.Site(6, Phase::kBackward, "out"), 4 * kMiB, MemoryClass::kTemporary);
  const RequestId of_result = maker.Allocate(backward, 4 * kMiB, MemoryClass::kTemporary);
  const RequestId moment = maker.Allocate(optimizer, 16 * kMiB, MemoryClass::kTemporary);
  const RequestId input = maker.Allocate(maker.Site(5, Phase::kLoad), 2048, MemoryClass::kInput);
  SetLawsByRule(&stream);
  const auto at8 = [&](RequestId id) { return stream[id].law.At(8); };
  EXPECT_EQ(at8(weight), 4 * kMiB);
  EXPECT_EQ(at8(saved), 16 * kMiB);
  EXPECT_EQ(at8(alike), 8 * kMiB);
  EXPECT_EQ(at8(odd), 4 * kMiB + 1);
  EXPECT_EQ(stream[odd].law.basis, LawBasis::kUnknown);
  EXPECT_EQ(at8(scalar), 4U);
  EXPECT_EQ(at8(gradient), 4 * kMiB);
  EXPECT_EQ(at8(of_result), 8 * kMiB);
  EXPECT_EQ(at8(moment), 16 * kMiB);
  EXPECT_EQ(at8(input), 4096U);
}

// One request at every recorded batch, by the same site and ordinal.
Stream Recording(uint64_t batch, Bytes bytes, uint64_t key = 1) {
  StreamMaker maker(batch);
  maker.Allocate(maker.Site(key, Phase::kForward), bytes);
  return maker.stream();
}

TEST(TwoRecordingsTest, LawsGoThroughBothSizes) {
  struct Case {
    Bytes at4, at8, at32;
  };
  for (const Case& c : {Case{1000, 2000, 8000}, Case{1000, 1000, 1000}, Case{1500, 2500, 8500},
                        Case{1600, 6400, 102400},   // every sample with every other
                        Case{2000, 1000, 2000}}) {  // a choice of kernel: the larger stands
    Stream stream = Recording(8, c.at8);
    const Alignment alignment = SetLawsByTwo(&stream, Recording(4, c.at4));
    EXPECT_EQ(alignment.share(), 1.0);
    EXPECT_EQ(stream.requests[0].law.At(32), c.at32) << c.at4 << " " << c.at8;
  }
}

TEST(TwoRecordingsTest, WhatHasNoPartnerKeepsTheRule) {
  Stream stream = Recording(8, 8 * kMiB, 1);
  const Alignment alignment = SetLawsByTwo(&stream, Recording(4, 4 * kMiB, 2));
  EXPECT_EQ(alignment.matched, 0U);
  EXPECT_EQ(alignment.share(), 0.0);
  EXPECT_EQ(stream.requests[0].law.At(16), 16 * kMiB);
  EXPECT_EQ(stream.requests[0].law.basis, LawBasis::kRule);
}

// Steps as PyTorch makes them: gradients of one step are freed in the next.
Stream ManySteps(int steps, int odd_step = -1) {
  StreamMaker maker;
  const SiteId load = maker.Site(1, Phase::kLoad);
  const SiteId forward = maker.Site(2, Phase::kForward);
  const SiteId backward = maker.Site(3, Phase::kBackward);
  maker.Allocate(load, 30 * kMiB, MemoryClass::kWeight);
  RequestId gradient = RequestId::kNone;
  for (int step = 0; step < steps; ++step) {
    const RequestId saved = maker.Allocate(forward, (step == odd_step ? 80 : 40) * kMiB);
    if (gradient != RequestId::kNone) maker.Free(gradient);
    gradient = maker.Allocate(backward, 30 * kMiB, MemoryClass::kGradient);
    maker.Free(saved);
    maker.EndStep();
  }
  return maker.stream();
}

TEST(RepeatedStepsTest, ThreeOfARunOfEqualStepsStay) {
  Stream stream = ManySteps(50);
  const Outcome whole = ReplayOf(stream);
  DropRepeatedSteps(&stream);
  EXPECT_EQ(stream.repeated_steps, 45U);  // the first frees no gradient, the second one of another place
  EXPECT_EQ(stream.requests.size(), 1U + 2 * 5);
  const Outcome some = ReplayOf(stream);
  EXPECT_EQ(some.allocated.bytes, whole.allocated.bytes);
  EXPECT_EQ(some.reserved.bytes, whole.reserved.bytes);
}

TEST(RepeatedStepsTest, AStepThatDiffersStaysWithItsPlace) {
  Stream stream = ManySteps(50, 40);
  const Outcome whole = ReplayOf(stream);
  DropRepeatedSteps(&stream);
  const Outcome some = ReplayOf(stream);
  EXPECT_EQ(some.allocated.bytes, whole.allocated.bytes);
  EXPECT_EQ(some.allocated.step, 40U);
  EXPECT_EQ(some.allocated.bytes, 140 * kMiB);
  EXPECT_EQ(stream.repeated_steps, 35U + 6U);
  // Every free has its allocation before it, once.
  std::vector<int> alive(stream.requests.size());
  for (const Event& event : stream.events) {
    if (event.kind == EventKind::kStepEnd) continue;
    alive[static_cast<size_t>(event.request)] += event.kind == EventKind::kAllocate ? 1 : -1;
    EXPECT_GE(alive[static_cast<size_t>(event.request)], 0);
  }
}

TEST(ReplayTest, SaysWhereThePeakIsAndWhatItIsMadeOf) {
  const Stream stream = ManySteps(3);
  const Outcome outcome = ReplayOf(stream);
  EXPECT_EQ(outcome.allocated.bytes, 100 * kMiB);
  EXPECT_EQ(outcome.classes[static_cast<size_t>(MemoryClass::kWeight)], 30 * kMiB);
  EXPECT_EQ(outcome.phases[static_cast<size_t>(Phase::kLoad)], 30 * kMiB);
  ASSERT_EQ(outcome.step_peaks.size(), 3U);
  EXPECT_EQ(outcome.step_peaks[0], 100 * kMiB);
  EXPECT_EQ(stream[outcome.largest.front()].bytes, 40 * kMiB);
  EXPECT_FALSE(outcome.failure.has_value());
}

TEST(ReplayTest, EndsWhereTheCardRefuses) {
  const Outcome outcome = ReplayOf(ManySteps(3), 75 * kMiB);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failed_at.step, 0U);
  EXPECT_EQ(outcome.failed_at.phase, Phase::kBackward);
  EXPECT_EQ(outcome.failure->requested, 30 * kMiB);
}

TEST(OptionsTest, ReadTheRunsOwnSettings) {
  RunFacts facts;
  facts.pytorch = {2, 15};
  facts.allocator_settings = "expandable_segments:True";
  EXPECT_TRUE(OptionsOf(facts).value().settings.expandable_segments);
  facts.allocator_settings = "backend:cudaMallocAsync";
  EXPECT_FALSE(OptionsOf(facts).ok());
  facts.allocator_settings = "nonsense:1";
  ASSERT_FALSE(OptionsOf(facts).ok());
  EXPECT_NE(OptionsOf(facts).error().message.find("nonsense"), std::string::npos);
  facts.allocator_settings.clear();
  facts.pytorch = {1, 13};
  EXPECT_FALSE(OptionsOf(facts).ok());
}

}  // namespace
}  // namespace vramtrace::forecast
