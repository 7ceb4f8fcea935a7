#include <gtest/gtest.h>

#include <cmath>

#include "analyzer/forecast/bands.h"
#include "tests/unit/fit_streams.h"

namespace vramtrace::forecast {
namespace {

using fit::testing::Defaults;
using fit::testing::kTestMiB;
using fit::testing::MakeStream;
using fit::testing::Training;

constexpr int64_t kMiB = int64_t{1} << 20;

Evidence Simulated(Basis basis) {
  Evidence evidence;
  evidence.basis = basis;
  return evidence;
}

TEST(Bands, WidenAsTheBasisWeakens) {
  double before = -1;
  for (const Basis basis :
       {Basis::kRecording, Basis::kTwoRecordings, Basis::kOneRecording, Basis::kOneSample}) {
    const Band band = BandOf(Simulated(basis));
    EXPECT_LE(band.allocated_low, 0);
    EXPECT_LE(band.reserved_low, 0);
    EXPECT_GT(band.allocated_high, before) << BasisText(Simulated(basis));
    before = band.allocated_high;
  }
}

TEST(Bands, OfARealRunReplayedHaveNoWidth) {
  Evidence evidence = Simulated(Basis::kRecording);
  evidence.simulated = false;
  const Band band = BandOf(evidence);
  EXPECT_EQ(band.allocated_high, 0);
  EXPECT_EQ(band.reserved_low, 0);
  EXPECT_EQ(band.elsewhere_high, 0) << "its context was recorded";
}

TEST(Bands, OfADryRunHoldWhatRealCardsDid) {
  const Band band = BandOf(Simulated(Basis::kRecording));
  EXPECT_GE(band.reserved_high, 0.01);
  EXPECT_GE(band.elsewhere_high, 94 * kMiB);
  Evidence convolutions = Simulated(Basis::kRecording);
  convolutions.convolutions = true;
  EXPECT_GE(BandOf(convolutions).reserved_high, 0.047) << "VGG16 was 4.7 % larger than its dry run";
  EXPECT_LE(BandOf(convolutions).reserved_low, -0.064) << "ConvNeXt was 6.4 % smaller";
}

TEST(Bands, AddIndependentErrorsAsSquares) {
  Evidence evidence = Simulated(Basis::kRecording);
  const double card = BandOf(evidence).reserved_high;
  evidence.technique_low = -0.03;
  evidence.technique_high = 0.04;
  const Band band = BandOf(evidence);
  EXPECT_DOUBLE_EQ(band.reserved_high, std::hypot(card, 0.04));
  EXPECT_DOUBLE_EQ(band.reserved_low, -std::hypot(card, 0.03));
}

TEST(Bands, WidenWhereTheRecordingHasGaps) {
  const Evidence whole = Simulated(Basis::kOneRecording);
  const double usual = BandOf(whole).allocated_high;
  const auto wider = [&](auto change) {
    Evidence evidence = whole;
    change(&evidence);
    return BandOf(evidence).allocated_high > usual;
  };
  EXPECT_TRUE(wider([](Evidence* evidence) { evidence->sizes_known = false; }));
  EXPECT_TRUE(wider([](Evidence* evidence) { evidence->events_lost = true; }));
  EXPECT_TRUE(wider([](Evidence* evidence) { evidence->steps_seen = false; }));
  EXPECT_TRUE(wider([](Evidence* evidence) { evidence->matched_share = 0.9; }));
  EXPECT_TRUE(wider([](Evidence* evidence) { evidence->undecided_share = 0.1; }));
}

TEST(Bands, KnowConvolutionsByTheirNodes) {
  Stream stream = MakeStream({}, 4);
  EXPECT_FALSE(HasConvolutions(stream));
  stream.sites.emplace_back();
  stream.sites.back().operator_name = "ConvolutionBackward0";
  EXPECT_TRUE(HasConvolutions(stream));
}

TEST(Bands, CountWhatSizesWithoutALawCouldAdd) {
  Stream stream = MakeStream({.steps = 1}, 4);
  stream.requests[1].law = SizeLaw::Fixed(stream.requests[1].bytes, LawBasis::kUnknown);  // 16 MiB
  stream = AtBatch(stream, 12);
  const Outcome outcome = Replay(stream, Defaults());
  // Twice as much more, of 200 MiB of weights, 7 layers of 48 MiB and this one.
  EXPECT_NEAR(UndecidedShare(stream, outcome), 32.0 / (200 + 7 * 48 + 16), 1e-3);
  EXPECT_EQ(UndecidedShare(AtBatch(stream, 2), outcome), 0) << "a smaller batch cannot add";
}

class JudgeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stream_ = MakeStream({}, 16);
    outcome_ = Replay(stream_, options_);
    band_ = BandOf(Simulated(Basis::kTwoRecordings));
  }
  Judgement On(Bytes total) {
    ReplayOptions options = options_;
    options.total = total;
    return Judge(stream_, outcome_, options, band_);
  }
  Stream stream_;
  ReplayOptions options_ = Defaults(400 * kTestMiB);
  Outcome outcome_;
  Band band_;
};

TEST_F(JudgeTest, FitsOnlyWhenTheUpperEndDoes) {
  const Judgement roomy = On(100 * 1024 * kTestMiB);
  EXPECT_EQ(roomy.verdict, Verdict::kFits);
  EXPECT_EQ(roomy.expected, outcome_.reserved.bytes + 400 * kTestMiB);
  EXPECT_GT(roomy.high, roomy.expected);
  EXPECT_GT(roomy.probability, 0.9999);
  EXPECT_EQ(On(roomy.high).verdict, Verdict::kFits);
  EXPECT_EQ(On(roomy.high).margin, 0);
  EXPECT_NEAR(On(roomy.high).probability, 0.975, 1e-6) << "2.5 % lie above the upper end";
  EXPECT_EQ(On(roomy.high - kTestMiB).verdict, Verdict::kNear);
  EXPECT_FALSE(On(roomy.high).under_pressure);
}

TEST_F(JudgeTest, ProbabilityRisesWithTheCard) {
  const Bytes expected = On(100 * 1024 * kTestMiB).expected;
  double before = 0;
  for (int64_t offset = -400; offset <= 400; offset += 20) {
    const double now = On(expected + static_cast<Bytes>(offset * kMiB)).probability;
    EXPECT_GE(now, before) << offset;
    before = now;
  }
  EXPECT_NEAR(On(expected).probability, 0.5, 1e-6);
  EXPECT_EQ(On(600 * kTestMiB).verdict, Verdict::kDoesNotFit);
  EXPECT_LT(On(600 * kTestMiB).probability, 0.025);
}

// Growing temporaries, each freed before the next: the cache holds them all, the run needs only the last.
Stream Growing() {
  Stream stream = MakeStream({.layers = 0, .steps = 1}, 1);
  for (Bytes size = 64; size <= 512; size += 64) {
    Request request;
    request.bytes = size * kTestMiB;
    request.law = SizeLaw::Fixed(request.bytes);
    request.site = SiteId{0};
    const RequestId id{static_cast<uint32_t>(stream.requests.size())};
    stream.requests.push_back(request);
    stream.events.push_back({EventKind::kAllocate, Phase::kForward, id});
    stream.events.push_back({EventKind::kFree, Phase::kForward, id});
  }
  return stream;
}

TEST(LeastReserved, IsWhatTheRunNeedsOnceItsCacheIsGivenBack) {
  const Stream stream = Growing();
  const ReplayOptions options = Defaults(100 * kTestMiB);
  const Outcome outcome = Replay(stream, options);
  EXPECT_GT(outcome.reserved.bytes, 2000 * kTestMiB);
  const Bytes least = LeastReserved(stream, outcome, options);
  EXPECT_EQ(least, 712 * kTestMiB);

  ReplayOptions card = options;
  card.total = least + options.elsewhere;
  EXPECT_FALSE(Replay(stream, card).failure.has_value());
  card.total -= 2 * kTestMiB;
  EXPECT_TRUE(Replay(stream, card).failure.has_value());
}

TEST(LeastReserved, MoreReservedThanTheCardHasIsNoFailure) {
  const Stream stream = Growing();
  ReplayOptions options = Defaults(100 * kTestMiB);
  const Outcome outcome = Replay(stream, options);
  options.total = 1400 * kTestMiB;
  const Judgement judgement = Judge(stream, outcome, options, BandOf(Simulated(Basis::kTwoRecordings)));
  EXPECT_EQ(judgement.verdict, Verdict::kFits);
  EXPECT_TRUE(judgement.under_pressure);
  EXPECT_GT(judgement.expected, options.total);
  EXPECT_GT(judgement.margin, 0);
}

TEST(LeastReserved, OfABatchThatGrowsIsThePeak) {
  const Stream stream = MakeStream({.activation = 4 * kTestMiB}, 16);
  const Outcome outcome = Replay(stream, Defaults());
  EXPECT_EQ(LeastReserved(stream, outcome, Defaults()), outcome.reserved.bytes);
}

}  // namespace
}  // namespace vramtrace::forecast
