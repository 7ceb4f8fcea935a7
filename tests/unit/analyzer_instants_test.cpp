// Instants by name, what happened between two, local peaks, and the views of a live set.
#include <gmock/gmock.h>

#include "analyzer/report/build.h"
#include "analyzer/report/diff.h"
#include "analyzer/report/views_text.h"
#include "analyzer/timeline/local_peaks.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::report {
namespace {

using model::Phase;
using ::testing::HasSubstr;
using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;
using timeline::Instant;
using timeline::InstantQuery;
using timeline::LocalPeaks;
using timeline::ParseInstant;

TEST(Instants, EveryFormIsRead) {
  using Kind = InstantQuery::Kind;
  EXPECT_EQ(ParseInstant("peak")->kind, Kind::kPeak);
  EXPECT_EQ(ParseInstant("oom")->kind, Kind::kOom);
  EXPECT_EQ(ParseInstant("end")->kind, Kind::kEnd);
  const auto place = ParseInstant("step:3,backward");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->kind, Kind::kPlace);
  EXPECT_EQ(place->step, 3U);
  EXPECT_THAT(place->phases, ::testing::ElementsAre(Phase::kBackward, Phase::kRecompute));
  EXPECT_TRUE(ParseInstant("step:0")->phases.empty());
  EXPECT_FALSE(ParseInstant("optimizer")->step.has_value());
  EXPECT_EQ(ParseInstant("12.5s")->number, 12'500'000'000U);
  EXPECT_EQ(ParseInstant("340ms")->number, 340'000'000U);
  EXPECT_EQ(ParseInstant("event:4711")->number, 4711U);
}

TEST(Instants, WhatIsNoneIsRefused) {
  for (const char* text : {"", "steps:1", "step:", "step:x", "step:1,", "step:1,lunch", "1.5", "1e5s", "-1s",
                           "1.2.3s", "event:", "event:99999999999999999999", "s", "ms", "Peak"}) {
    EXPECT_FALSE(ParseInstant(text).has_value()) << text;
  }
}

Instant At(uint64_t sequence, Phase phase) {
  Instant instant;
  instant.sequence = sequence;
  instant.phase = phase;
  return instant;
}

TEST(LocalPeaks, APlaceIsKeptOnceAndOnlyNearTheHighest) {
  LocalPeaks peaks;
  const auto climb = [&](uint64_t top, uint64_t sequence, Phase phase) {
    peaks.Add(100, At(sequence, phase), 0);
    peaks.Add(top, At(sequence + 1, phase), 0);
    peaks.Add(100, At(sequence + 2, phase), 0);
  };
  climb(500, 1, Phase::kForward);  // no longer near once 1000 is reached
  climb(1000, 10, Phase::kBackward);
  climb(950, 20, Phase::kOptimizer);
  climb(990, 30, Phase::kBackward);
  climb(899, 40, Phase::kClip);  // below nine tenths
  const auto found = peaks.Take();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bytes, 1000U);
  EXPECT_EQ(found[0].instant.sequence, 11U);
  EXPECT_EQ(found[0].times, 2U);
  EXPECT_EQ(found[1].bytes, 950U);
  EXPECT_EQ(found[1].instant.phase, Phase::kOptimizer);
}

TEST(LocalPeaks, SmallDipsAreOnePeakAndTheLastClimbCounts) {
  LocalPeaks peaks;
  for (const uint64_t bytes : {100, 1000, 990, 1010, 1000, 1020})
    peaks.Add(bytes, At(bytes, Phase::kForward), 0);
  const auto found = peaks.Take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes, 1020U);
  EXPECT_EQ(found[0].times, 1U);
}

class InstantsTest : public testing::FileTest {
 protected:
  BuiltReport Build(const std::string& at, const TrainingOptions& options = {}) {
    TraceBuilder builder;
    TrainingRun(options).Play(&builder);
    BuildOptions asked;
    if (!at.empty()) asked.at = ParseInstant(at);
    asked.views = true;
    auto built = BuildReport(Write(builder.Bytes(), "a.vtrace"), asked);
    EXPECT_TRUE(built.ok());
    return std::move(built.value());
  }
  static uint64_t Sum(const v1::Breakdown& breakdown) {
    uint64_t sum = 0;
    for (const v1::Allocation& allocation : breakdown.allocations()) sum += allocation.bytes();
    return sum;
  }
};

TEST_F(InstantsTest, APhaseOfAStepIsExplainedToTheByte) {
  for (const char* at :
       {"peak", "end", "step:1,forward", "step:0,backward", "optimizer", "event:40", "0.1ms"}) {
    const v1::Report report = Build(at).report;
    ASSERT_TRUE(report.devices(0).has_at_instant()) << at;
    const v1::Breakdown& shown = report.devices(0).at_instant();
    EXPECT_EQ(report.devices(0).instant(), at);
    EXPECT_EQ(shown.identity().mismatch(), 0) << at;
    uint64_t classes = 0;
    for (const v1::ClassRow& row : shown.classes()) classes += row.block_bytes();
    EXPECT_EQ(classes, shown.allocated()) << at;
  }
  const v1::Report forward = Build("step:1,forward").report;
  EXPECT_EQ(forward.devices(0).at_instant().moment().phase(), "forward");
  EXPECT_EQ(forward.devices(0).at_instant().moment().step(), 1U);
  EXPECT_EQ(Build("peak").report.devices(0).at_instant().allocated(),
            forward.devices(0).peak_allocated().bytes());
}

TEST_F(InstantsTest, WhatTheTraceDoesNotHoldIsAbsent) {
  EXPECT_FALSE(Build("step:99").report.devices(0).has_at_instant());
  EXPECT_FALSE(Build("oom").report.devices(0).has_at_instant());
  const v1::Report died = Build("oom", {.fail_at_layer = 1, .fail_at_step = 1}).report;
  EXPECT_EQ(died.devices(0).at_instant().moment().sequence(),
            died.devices(0).at_refusal().moment().sequence());
}

TEST_F(InstantsTest, EveryViewAddsUpToTheLiveSet) {
  const v1::Report report = Build("").report;
  const v1::Breakdown& peak = report.devices(0).at_peak();
  const v1::Views& views = peak.views();
  const uint64_t all = Sum(peak);
  ASSERT_GT(views.modules_size(), 2);
  EXPECT_EQ(views.modules(0).path(), "");
  EXPECT_EQ(views.modules(0).subtree(), all);
  uint64_t own = 0;
  for (const v1::ModuleRow& row : views.modules()) {
    own += row.own();
    EXPECT_EQ(row.weights() + row.gradients() + row.optimizer_state() + row.activations() + row.others(),
              row.subtree())
        << row.path();
  }
  EXPECT_EQ(own, all);
  const auto sum = [](const auto& rows) {
    uint64_t bytes = 0;
    for (const auto& row : rows) bytes += row.bytes();
    return bytes;
  };
  EXPECT_EQ(sum(views.stacks()), all);
  EXPECT_EQ(sum(views.sizes()), all);
  EXPECT_EQ(sum(views.ages()), all);
  EXPECT_EQ(sum(views.segments()), peak.reserved());
  uint64_t live = 0;
  for (const v1::SegmentRow& row : views.segments()) {
    live += row.live_bytes();
    EXPECT_LE(row.largest_hole(), row.bytes() - row.live_bytes());
    EXPECT_EQ(row.pins().empty(), row.live_blocks() == 0);
  }
  EXPECT_EQ(live, peak.allocated());
  EXPECT_EQ(views.tensors(0).weight(), TrainingOptions{}.weight_bytes);
}

TEST_F(InstantsTest, StepsHaveTheirOwnPeaks) {
  const v1::Report report = Build("", {.steps = 3}).report;
  const v1::DeviceReport& device = report.devices(0);
  ASSERT_GE(device.steps_size(), 3);
  uint64_t highest = 0;
  for (const v1::StepRow& row : device.steps()) {
    highest = std::max(highest, row.peak());
    EXPECT_LE(row.minimum(), row.peak());
    EXPECT_LE(row.begin_ns(), row.end_ns());
  }
  EXPECT_EQ(highest, device.peak_allocated().bytes());
  ASSERT_GT(device.local_peaks_size(), 0);
  EXPECT_EQ(device.local_peaks(0).bytes(), device.peak_allocated().bytes());
  for (const v1::ClassChange& change : device.local_peaks(0).changes()) EXPECT_EQ(change.change(), 0);
}

TEST_F(InstantsTest, BetweenTwoInstantsTheBytesAddUp) {
  const BuiltReport before = Build("step:0,forward");
  const BuiltReport after = Build("step:1,backward");
  const v1::Diff diff = MakeDiff(before.report, after.report);
  EXPECT_EQ(diff.a().allocated(), before.report.devices(0).at_instant().allocated());
  EXPECT_TRUE(diff.reasons().empty());
  const timeline::Traffic traffic = timeline::TrafficBetween(
      after.file, after.tables, after.stacks, 0, diff.a().moment().sequence(), diff.b().moment().sequence());
  const auto change =
      static_cast<int64_t>(traffic.allocated_bytes) - static_cast<int64_t>(traffic.freed_bytes);
  EXPECT_EQ(change, static_cast<int64_t>(Sum(after.report.devices(0).at_instant())) -
                        static_cast<int64_t>(Sum(before.report.devices(0).at_instant())));
  EXPECT_LE(traffic.kept_bytes, traffic.allocated_bytes);
  EXPECT_GT(traffic.freed_blocks, 0U);
}

TEST_F(InstantsTest, TablesFitATerminalAndShowEveryView) {
  const v1::Report report = Build("").report;
  const v1::DeviceReport& device = report.devices(0);
  for (const std::string& name : ViewNames()) {
    const std::vector<std::string> one = {name};
    const std::string text = ViewsText(device, device.at_peak(), one, {});
    EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 2) << name;
    for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
      EXPECT_LE(text.find('\n', begin) - begin, 100U) << name << ": " << text.substr(begin, 120);
    }
  }
  EXPECT_THAT(ViewsText(device, device.at_peak(), std::vector<std::string>{"module"}, {}),
              HasSubstr("layers"));
  const std::string folded = FoldedStacks(device.at_peak().views());
  EXPECT_EQ(std::count(folded.begin(), folded.end(), '\n'), device.at_peak().views().stacks_size());
}

}  // namespace
}  // namespace vramtrace::report
