#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/watch/progress.h"
#include "analyzer/watch/text.h"
#include "tests/unit/watch_fixture.h"

namespace vramtrace::watch {
namespace {

using ::testing::HasSubstr;

class WatchTrace : public WatchTest {
 protected:
  static TraceFacts Read(trace::TraceTail* tail) {
    TraceFacts facts;
    EXPECT_TRUE(tail->Poll([&](const trace::Event& event) { facts.Add(event); }).ok());
    return facts;
  }
};

TEST_F(WatchTrace, HandsOutEachPacketOnceWhileTheFileGrows) {
  testing::TraceBuilder builder(4096);
  trace::TraceTail tail((folder_ / "run.vtrace").string());
  EXPECT_FALSE(tail.Poll([](const trace::Event&) {}).ok()) << "no file yet";
  uint64_t allocations = 0;
  uint64_t last = 0;
  const auto use = [&](const trace::Event& event) {
    if (event.kind != trace::PacketKind::kBlockAllocate) return;
    ++allocations;
    EXPECT_GT(event.sequence, last);
    last = event.sequence;
  };
  for (int round = 1; round <= 40; ++round) {
    for (int i = 0; i < 10; ++i) {
      builder.SetThread(i % 2 == 0 ? 1 : 2);
      builder.Allocate({.address = builder.kBaseAddress + builder.sequence() * 512, .bytes = 512});
    }
    Write(&builder);
    ASSERT_TRUE(tail.Poll(use).ok());
    EXPECT_EQ(allocations, static_cast<uint64_t>(10 * round));
  }
  ASSERT_TRUE(tail.Poll(use).ok());
  EXPECT_EQ(allocations, 400u);
}

TEST_F(WatchTrace, RefusesWhatIsNoTrace) {
  trace::TraceTail tail(Write(std::string(5000, 'x')));
  const auto read = tail.Poll([](const trace::Event&) {});
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().Sentence(), HasSubstr("VRTCHNK1"));
  trace::TraceTail folder(folder_.string());
  EXPECT_FALSE(folder.Poll([](const trace::Event&) {}).ok());
}

TEST_F(WatchTrace, SurvivesEveryCut) {
  const std::string whole = [&] {
    std::ifstream file(PlayedTrace(Played()), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  for (size_t bytes = 1; bytes < whole.size(); bytes += whole.size() / 97 + 1) {
    trace::TraceTail tail(Write(whole.substr(0, bytes), "cut.vtrace"));
    TraceFacts facts;
    (void)tail.Poll([&](const trace::Event& event) { facts.Add(event); });
    EXPECT_LE(facts.steps().size(), 12u);
  }
}

TEST_F(WatchTrace, TimesStepsAndWaiting) {
  Played played;
  played.step = [](int) { return PlayedStep{.data_ms = 30, .work_ms = 70}; };
  trace::TraceTail tail(PlayedTrace(played));
  const TraceFacts facts = Read(&tail);
  ASSERT_EQ(facts.steps().size(), 11u) << "the first step has no beginning";
  for (const StepTime& step : facts.steps()) {
    EXPECT_NEAR(step.seconds, 0.100, 0.001);
    EXPECT_NEAR(step.data, 0.030, 0.001);
    EXPECT_EQ(step.batch, 32u);
    EXPECT_EQ(step.blocks, 10u);
  }
  EXPECT_EQ(facts.loader().workers, 4);
  EXPECT_TRUE(facts.loader().pinned);
  EXPECT_EQ(facts.loader().length, 1000u);
  EXPECT_EQ(facts.loader().batches, 12u);
}

TEST_F(WatchTrace, TellsClassesByTheProgramsNames) {
  testing::TraceBuilder builder;
  const uint64_t base = builder.kBaseAddress;
  for (uint64_t i = 0; i < 4; ++i) builder.Allocate({.address = base + i * kMebibyte, .bytes = kMebibyte});
  builder.Label(v1::Label::KIND_PARAMETER, base, kMebibyte, "w");
  builder.Label(v1::Label::KIND_GRADIENT, base + kMebibyte, kMebibyte, "w");
  builder.Label(v1::Label::KIND_OPTIMIZER_STATE, base + 2 * kMebibyte, kMebibyte, "w", "exp_avg");
  builder.Label(v1::Label::KIND_PARAMETER, base, kMebibyte, "tied");
  builder.Free({.address = base + kMebibyte});
  trace::TraceTail tail(Write(&builder));
  const LiveClasses classes = Read(&tail).classes();
  EXPECT_EQ(classes.weights, kMebibyte);
  EXPECT_EQ(classes.gradients, 0u);
  EXPECT_EQ(classes.optimizer, kMebibyte);
  EXPECT_EQ(classes.other, kMebibyte);
}

TEST_F(WatchTrace, ForesaysEpochsAndMoney) {
  trace::TraceTail tail(PlayedTrace(Played()));
  const TraceFacts facts = Read(&tail);
  const Plan plan{.epochs = 3, .price = 3.6, .currency = "CNY"};
  const Progress progress = Estimate(facts, plan, 100);
  EXPECT_NEAR(progress.epoch_seconds.value_or(0), 100, 0.5);
  EXPECT_NEAR(progress.epoch_left_seconds.value_or(0), 98.8, 0.5);
  EXPECT_NEAR(progress.left_seconds.value_or(0), 298.8, 1);
  EXPECT_NEAR(progress.cost_so_far.value_or(0), 0.1, 1e-9);
  EXPECT_NEAR(progress.cost_to_come.value_or(0), 0.30, 0.01);
  EXPECT_THAT(ProgressText(progress, plan), HasSubstr("0.10 CNY so far"));
  const Progress given = Estimate(facts, {.steps = 22, .currency = "CNY"}, 1);
  EXPECT_NEAR(given.left_seconds.value_or(0), 1.0, 0.02);
  EXPECT_FALSE(given.cost_so_far.has_value());
  EXPECT_THAT(BillingLine(plan), HasSubstr("3.60 CNY an hour"));
}

TEST_F(WatchTrace, ALineSaysItAll) {
  WriteScenario("utilization = 41\nmemory_utilization = 17\nthrottle = hw_thermal");
  std::string why;
  Session session(OpenNvml(&why), why, {.currency = "USD"}, {});
  session.Follow(PlayedTrace(Played()));
  const Moment moment = session.Sample(::getpid(), {});
  const std::string line = Line(moment, {});
  EXPECT_THAT(line, HasSubstr("11.82 GiB of 23.64 GiB (50 %), 41 % busy, memory busy 17 %"));
  EXPECT_THAT(line, HasSubstr("step 12 100 ms, data"));
  EXPECT_THAT(line, HasSubstr("throttled by heat"));
  for (const size_t columns : {size_t{20}, size_t{80}}) {
    std::istringstream block(Block(moment, {}, columns));
    for (std::string row; std::getline(block, row);) EXPECT_LE(row.size(), columns);
  }
}

}  // namespace
}  // namespace vramtrace::watch
