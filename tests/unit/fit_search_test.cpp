// The search with a made-up program in place of dry runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "analyzer/fit/render.h"
#include "analyzer/fit/search.h"
#include "analyzer/fit/stream_forecaster.h"

namespace vramtrace::fit {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Kind = CardAnswer::Kind;

constexpr Bytes kMiB = Bytes{1} << 20;

// A program that takes 1000 MiB, and 100 MiB more a sample, beyond the context.
struct Program : Runner {
  std::function<Bytes(uint64_t)> needs = [](uint64_t value) { return (1000 + 100 * value) * kMiB; };
  std::function<bool(uint64_t)> accepts = [](uint64_t) { return true; };
  std::function<End(uint64_t)> ends = [](uint64_t) { return End::kCompleted; };
  std::vector<uint64_t> values;     // that were run on a card
  std::vector<uint64_t> unlimited;  // and without a limit

  RunResult Run(const RunRequest& request) override {
    const uint64_t value = std::stoull(request.command.back());
    const bool is_unlimited = request.total >= Bytes{1} << 39;
    (is_unlimited ? unlimited : values).push_back(value);
    RunResult run;
    run.total = request.total;
    run.context = catalogue::ContextOf(*request.gpu).bytes;
    run.last_lines = {"Traceback (most recent call last):", "RuntimeError: what it said"};
    run.end = ends(value);
    if (!accepts(value)) run.end = End::kFailed;
    run.exit_code = run.end == End::kCompleted ? 0 : 1;
    if (run.end == End::kTimedOut) run.why = "stopped: the time-out of 10 min is over (--timeout)";
    if (run.end != End::kCompleted) return run;
    run.peak_used = needs(value) + run.context;
    if (run.peak_used <= run.total) return run;
    run.end = End::kOutOfMemory;
    run.exit_code = 1;
    run.largest_refused = 100 * kMiB;
    return run;
  }
};

// What a stream of known sizes would answer.
struct Table : Forecaster {
  std::function<bool(uint64_t)> fits;
  explicit Table(std::function<bool(uint64_t)> says) : fits(std::move(says)) {}
  std::string Learn(const Recording&, const Recording&) override { return ""; }
  std::string Basis() const override { return "from a table"; }
  bool FollowsValue() const override { return true; }
  bool Fits(uint64_t value, const Target&) override { return fits(value); }
  Forecast At(uint64_t value, const Target&) override {
    Forecast forecast;
    forecast.judgement.verdict = fits(value) ? forecast::Verdict::kFits : forecast::Verdict::kDoesNotFit;
    return forecast;
  }
};

class SearchTest : public ::testing::Test {
 protected:
  SearchTest() {
    options_.command = {"train", "--batch", "{batch}"};
    AddCard("rtx4090", 24576);
  }
  void AddCard(std::string_view name, Bytes mebibytes) {
    const catalogue::Gpu* gpu = catalogue::FindGpu(name);
    // So that the context does not matter: what the made-up program can have is `mebibytes`.
    options_.targets.push_back({gpu, mebibytes * kMiB + catalogue::ContextOf(*gpu).bytes, "given"});
  }
  FitReport Run() {
    return Search(options_, &program_, {forecaster_}, [](const std::string&) {});
  }
  void Forecast(std::function<bool(uint64_t)> fits) {
    forecaster_ = [fits] { return std::make_unique<Table>(fits); };
  }
  SearchOptions options_;
  Program program_;
  MakeForecaster forecaster_ = [] { return std::make_unique<PeakForecaster>(); };
};

// 24576 = 1000 + 100 * 235 + 76
TEST_F(SearchTest, ForecastsFromTwoRunsAndProvesTheEdgeWithTwo) {
  const FitReport report = Run();
  ASSERT_FALSE(report.problem.has_value());
  EXPECT_EQ(program_.unlimited, (std::vector<uint64_t>{4, 8}));
  EXPECT_EQ(program_.values, (std::vector<uint64_t>{235, 236}));
  ASSERT_EQ(report.cards.size(), 1U);
  const CardAnswer& answer = report.cards[0];
  EXPECT_EQ(answer.kind, Kind::kProved);
  EXPECT_EQ(answer.largest->value, 235U);
  EXPECT_EQ(answer.above->value, 236U);
  EXPECT_EQ(answer.forecast_largest, 235U);
  EXPECT_FALSE(answer.contradicted);
  EXPECT_LT(*answer.safe, 235U) << "a straight line through two peaks leaves room";
}

TEST_F(SearchTest, ReadsWellInText) {
  const std::string text = TextOf(Run());
  EXPECT_THAT(text, HasSubstr("NVIDIA GeForce RTX 4090 ("));
  EXPECT_THAT(text, HasSubstr("largest batch"));
  EXPECT_THAT(text, HasSubstr("235  proved by dry runs: 235 fits, 236 does not (forecast 235)"));
  EXPECT_THAT(text, HasSubstr("236 would need"));
  EXPECT_THAT(text, HasSubstr("refused 100.0 MiB"));
  EXPECT_THAT(text, HasSubstr("on a real card"));
}

TEST_F(SearchTest, JsonHasEveryRunAndTheAnswer) {
  const nlohmann::json json = JsonOf(Run());
  EXPECT_EQ(json["format"], "vramtrace-fit");
  EXPECT_EQ(json["runs"].size(), 4U);
  EXPECT_EQ(json["runs"][3]["end"], "out of memory");
  EXPECT_EQ(json["cards"][0]["kind"], "proved");
  EXPECT_EQ(json["cards"][0]["largest"]["value"], 235);
  EXPECT_EQ(json["cards"][0]["largest"]["run"]["peak_used"],
            program_.needs(235) + json["cards"][0]["largest"]["run"]["context"].get<Bytes>());
}

TEST_F(SearchTest, CardsOfOneArchitectureShareRecordings) {
  AddCard("l40", 47000);  // 8.9 as well
  AddCard("a100-80", 80000);
  const FitReport report = Run();
  EXPECT_EQ(program_.unlimited, (std::vector<uint64_t>{4, 8, 4, 8}));
  ASSERT_EQ(report.cards.size(), 3U);
  EXPECT_EQ(report.cards[1].largest->value, 460U);
  EXPECT_EQ(report.cards[2].largest->value, 790U);
}

TEST_F(SearchTest, GoesOnWhereTheForecastIsTooHigh) {
  Forecast([](uint64_t value) { return value <= 300; });
  const FitReport report = Run();
  const CardAnswer& answer = report.cards[0];
  EXPECT_EQ(answer.kind, Kind::kProved);
  EXPECT_EQ(answer.largest->value, 235U);
  EXPECT_EQ(answer.above->value, 236U);
  EXPECT_TRUE(answer.contradicted);
  EXPECT_THAT(answer.notes, Contains("batch 300 was forecast to fit and did not"));
  EXPECT_LT(program_.values.size(), 16U);
  EXPECT_EQ(program_.unlimited.size(), 3U) << "a contradiction asks whether runs repeat";
  EXPECT_TRUE(report.deterministic);
}

TEST_F(SearchTest, GoesOnWhereTheForecastIsTooLow) {
  Forecast([](uint64_t value) { return value <= 230; });
  const FitReport report = Run();
  EXPECT_EQ(report.cards[0].kind, Kind::kProved);
  EXPECT_EQ(report.cards[0].largest->value, 235U);
  EXPECT_EQ(program_.values, (std::vector<uint64_t>{230, 231, 233, 237, 235, 236}));
}

TEST_F(SearchTest, SaysWhenNotEvenOneFits) {
  program_.needs = [](uint64_t value) { return (30000 + 100 * value) * kMiB; };
  const FitReport report = Run();
  EXPECT_EQ(report.cards[0].kind, Kind::kNothingFits);
  EXPECT_EQ(report.cards[0].above->value, 1U);
  EXPECT_EQ(program_.values, (std::vector<uint64_t>{1}));
  EXPECT_THAT(TextOf(report), HasSubstr("none: not even 1 fits, proved by a dry run"));
}

TEST_F(SearchTest, StopsAtTheBoundThatWasGiven) {
  options_.to = 64;
  const FitReport report = Run();
  EXPECT_EQ(report.cards[0].kind, Kind::kEverythingFits);
  EXPECT_EQ(report.cards[0].largest->value, 64U);
  EXPECT_EQ(program_.values, (std::vector<uint64_t>{64}));
}

TEST_F(SearchTest, FindsTheLargestValueThatIsAccepted) {
  program_.accepts = [](uint64_t value) { return value % 8 == 0; };
  const FitReport report = Run();
  ASSERT_FALSE(report.problem.has_value());
  EXPECT_EQ(program_.unlimited, (std::vector<uint64_t>{4, 8, 16}));
  EXPECT_EQ(report.cards[0].kind, Kind::kProved);
  EXPECT_EQ(report.cards[0].largest->value, 232U);
  EXPECT_EQ(report.cards[0].above->value, 240U);
  EXPECT_EQ(report.step, 8U);
  EXPECT_THAT(TextOf(report), HasSubstr("multiples of 8"));
}

TEST_F(SearchTest, LearnsTheMultipleAtTheEdge) {
  program_.accepts = [](uint64_t value) { return value % 4 == 0; };
  const FitReport report = Run();
  EXPECT_EQ(report.cards[0].kind, Kind::kProved);
  EXPECT_EQ(report.cards[0].largest->value, 232U);
  EXPECT_EQ(report.cards[0].above->value, 236U);
}

TEST_F(SearchTest, FindsTheLargestWhereTheProgramHasABoundOfItsOwn) {
  program_.accepts = [](uint64_t value) { return value <= 100; };
  const FitReport report = Run();
  EXPECT_EQ(report.cards[0].kind, Kind::kEverythingFits);
  EXPECT_EQ(report.cards[0].largest->value, 100U);
}

TEST_F(SearchTest, SaysThatTheEdgeIsNotMonotone) {
  // As fragmentation may do: 41 and 42 do not fit, 43 does.
  const auto is_hole = [](uint64_t value) { return value == 41 || value == 42 || value > 43; };
  program_.needs = [=](uint64_t value) { return (is_hole(value) ? 30000 : 1000 + 100 * value) * kMiB; };
  Forecast([=](uint64_t value) { return !is_hole(value); });
  const FitReport report = Run();
  const CardAnswer& answer = report.cards[0];
  EXPECT_EQ(answer.kind, Kind::kProved);
  EXPECT_FALSE(answer.monotone);
  EXPECT_EQ(answer.largest->value, 40U);
  EXPECT_THAT(answer.notes, Contains(HasSubstr("41 does not fit and 43 does")));
  EXPECT_EQ(program_.values, (std::vector<uint64_t>{40, 41, 43}));
}

TEST_F(SearchTest, SaysThatRunsDoNotRepeat) {
  Forecast([](uint64_t value) { return value <= 300; });
  int runs = 0;
  program_.needs = [&runs](uint64_t value) {
    return (1000 + 100 * value + static_cast<Bytes>(++runs)) * kMiB;
  };
  const FitReport report = Run();
  EXPECT_FALSE(report.deterministic);
  EXPECT_THAT(report.notes, Contains(HasSubstr("not deterministic: two runs of batch 4 took")));
}

TEST_F(SearchTest, SaysThatTheProgramHangs) {
  program_.ends = [](uint64_t) { return End::kTimedOut; };
  const FitReport report = Run();
  ASSERT_TRUE(report.problem.has_value());
  EXPECT_EQ(report.problem->kind, Problem::Kind::kTimedOut);
  EXPECT_THAT(report.problem->words, HasSubstr("did not come to an end"));
  EXPECT_THAT(TextOf(report), HasSubstr("  | RuntimeError: what it said"));
}

TEST_F(SearchTest, AProofThatHangsLeavesTheForecast) {
  program_.ends = [](uint64_t value) { return value > 100 ? End::kTimedOut : End::kCompleted; };
  const FitReport report = Run();
  ASSERT_FALSE(report.problem.has_value());
  EXPECT_EQ(report.cards[0].kind, Kind::kNotProved);
  EXPECT_EQ(report.cards[0].forecast_largest, 235U);
  EXPECT_THAT(report.cards[0].notes, Contains(HasSubstr("not proved: with batch 235")));
  EXPECT_THAT(TextOf(report), HasSubstr("not proved (forecast 235)"));
}

TEST_F(SearchTest, SaysThatTheValueChangesNothing) {
  program_.needs = [](uint64_t) { return 1000 * kMiB; };
  const FitReport report = Run();
  ASSERT_TRUE(report.problem.has_value());
  EXPECT_EQ(report.problem->kind, Problem::Kind::kNotFollowed);
  EXPECT_THAT(report.problem->words, HasSubstr("{batch} does not change the memory: with 4 and 8"));
}

TEST_F(SearchTest, SaysThatTheProgramFailsWhateverTheValue) {
  program_.accepts = [](uint64_t) { return false; };
  const FitReport report = Run();
  ASSERT_TRUE(report.problem.has_value());
  EXPECT_EQ(report.problem->kind, Problem::Kind::kProgramFailed);
  EXPECT_EQ(report.problem->exit_code, 1);
  EXPECT_THAT(report.problem->words, HasSubstr("ends with status 1 for batch 4, 8, 16"));
  EXPECT_THAT(TextOf(report), HasSubstr("the program's last lines:"));
  EXPECT_LT(report.trials.size(), 8U);
}

TEST_F(SearchTest, SaysThatNoGpuWasUsed) {
  struct Idle : Runner {
    RunResult Run(const RunRequest&) override {
      RunResult run;
      run.end = End::kCompleted;
      return run;
    }
  } idle;
  const FitReport report = Search(options_, &idle, {forecaster_}, [](const std::string&) {});
  EXPECT_EQ(report.problem->kind, Problem::Kind::kNoGpu);
}

TEST_F(SearchTest, EndsWhenInterrupted) {
  program_.ends = [](uint64_t value) { return value > 100 ? End::kInterrupted : End::kCompleted; };
  const FitReport report = Run();
  EXPECT_EQ(report.problem->kind, Problem::Kind::kInterrupted);
  EXPECT_EQ(program_.values.size(), 1U);
}

TEST_F(SearchTest, GivesUpInTheEnd) {
  options_.most_runs = 5;
  Forecast([](uint64_t value) { return value <= 4000; });
  const FitReport report = Run();
  EXPECT_EQ(report.cards[0].kind, Kind::kNotProved);
  EXPECT_THAT(report.cards[0].notes, Contains(HasSubstr("given up after 5 runs")));
}

TEST_F(SearchTest, SaysWhatItIsDoing) {
  std::vector<std::string> lines;
  (void)Search(options_, &program_, {forecaster_}, [&](const std::string& line) { lines.push_back(line); });
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], HasSubstr("dry run 1: batch 4 on an unlimited NVIDIA GeForce RTX 4090"));
  EXPECT_THAT(lines[3], HasSubstr("to prove the edge"));
}

}  // namespace
}  // namespace vramtrace::fit
