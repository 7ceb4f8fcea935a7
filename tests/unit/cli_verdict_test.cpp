#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/cli/dry_run_summary.h"
#include "analyzer/cli/dry_run_verdict.h"
#include "analyzer/forecast/bands.h"

namespace vramtrace::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Fit = DryRunVerdict::Fit;

constexpr uint64_t kGiB = 1ULL << 30;
constexpr uint64_t kMiB = 1ULL << 20;

launch::SimulatedDevice Device(uint64_t peak, uint64_t refused = 0) {
  return {.total_bytes = 24 * kGiB,
          .context_bytes = 400 * kMiB,
          .peak_used_bytes = peak,
          .refused_allocations = refused,
          .largest_refused_bytes = refused > 0 ? 2 * kGiB : 0};
}

DryRunFacts Facts(std::vector<launch::SimulatedDevice> devices) {
  DryRunFacts facts;
  facts.gpu_name = "NVIDIA Test";
  facts.total_basis = "measured";
  facts.context_basis = "general knowledge";
  facts.processes = {{.process = 1, .devices = std::move(devices), .invented = {}}};
  return facts;
}

TEST(Verdict, FitsOnlyWhenTheHighEstimateDoes) {
  const DryRunVerdict fits = Judge(Facts({Device(10 * kGiB)}));
  EXPECT_EQ(fits.fit, Fit::kFits);
  EXPECT_EQ(fits.exit_code, 0);
  EXPECT_THAT(fits.lines,
              Contains("NVIDIA Test: peak device used 10.00 GiB of 24.00 GiB (measured), 400.0 MiB of "
                       "it the context (general knowledge)"));
  EXPECT_THAT(fits.lines, Contains(HasSubstr("it fits at this batch: 14.00 GiB stay free")));

  const DryRunVerdict close = Judge(Facts({Device(23 * kGiB)}));
  EXPECT_EQ(close.fit, Fit::kTooClose);
  EXPECT_EQ(close.exit_code, 0);
  EXPECT_THAT(close.lines, Contains(HasSubstr("too close to call: 1.00 GiB stay free")));
}

TEST(Verdict, SaysWhereMemoryDependsOnInventedValues) {
  DryRunFacts facts = Facts({Device(10 * kGiB)});
  EXPECT_THAT(Judge(facts).lines, Not(Contains(HasSubstr("invented"))));
  facts.processes[0].invented = {{"value", "train.py:9", "a value of float32", 5},
                                 {"shape", "moe.py:7", "nonzero: 8 of 16", 1},
                                 {"shape", "train.py:3", "a value of int64", 40},
                                 {"branch", "train.py:4", "a value of bool", 2}};
  const DryRunVerdict verdict = Judge(facts);
  EXPECT_THAT(verdict.lines, Contains("memory depends on invented values: train.py:3 (a value of int64), "
                                      "moe.py:7 (nonzero: 8 of 16)"));
  EXPECT_THAT(verdict.lines,
              Contains("the program branched on invented values: train.py:4 (a value of bool)"));
}

TEST(Verdict, HighEstimateIsTheUpperEndOfAForecastsBand) {
  for (const bool convolutions : {false, true}) {
    const forecast::Band band =
        forecast::BandOf({.basis = forecast::Basis::kRecording, .convolutions = convolutions});
    const auto context = static_cast<uint64_t>(band.elsewhere_high);
    DryRunFacts facts = Facts({});
    facts.trace = TraceFacts{.steps = 2, .convolutions = convolutions};
    EXPECT_EQ(HighEstimate(facts, Device(400 * kMiB)), 400 * kMiB + context);
    const uint64_t high = HighEstimate(facts, Device(10'400 * kMiB));
    EXPECT_NEAR(static_cast<double>(high - 10'400 * kMiB - context) / kMiB, 10'000 * band.reserved_high, 1);
  }
}

TEST(Verdict, TakesTheWiderBandWhereNoTraceTells) {
  DryRunFacts facts = Facts({Device(23 * kGiB)});
  EXPECT_EQ(Judge(facts).fit, Fit::kTooClose);
  facts.trace = TraceFacts{.steps = 2, .peak_allocated = kGiB, .peak_reserved = kGiB, .convolutions = true};
  EXPECT_EQ(Judge(facts).fit, Fit::kTooClose);
  facts.trace->convolutions = false;
  EXPECT_EQ(Judge(facts).fit, Fit::kFits);
}

TEST(Verdict, ARefusalIsOutOfMemoryOnlyWhenTheProgramFailed) {
  DryRunFacts failed = Facts({Device(23 * kGiB, 3)});
  failed.exit_code = 1;
  const DryRunVerdict verdict = Judge(failed);
  EXPECT_EQ(verdict.fit, Fit::kDoesNotFit);
  EXPECT_EQ(verdict.exit_code, 1) << "the program's own";
  EXPECT_THAT(verdict.lines,
              Contains("it does not fit: 3 allocations were refused, the largest of 2.00 GiB"));

  const DryRunVerdict recovered = Judge(Facts({Device(20 * kGiB, 1)}));
  EXPECT_EQ(recovered.fit, Fit::kFits);
  EXPECT_THAT(recovered.lines, Contains("1 allocation was refused on the way and the program went on"));
}

TEST(Verdict, BudgetFailsTheRunAndSaysByHowMuch) {
  DryRunFacts facts = Facts({Device(10 * kGiB)});
  facts.budget_bytes = 10 * kGiB;
  EXPECT_EQ(Judge(facts).exit_code, 0) << "the budget itself is allowed";
  facts.budget_bytes = 10 * kGiB - 1;
  const DryRunVerdict over = Judge(facts);
  EXPECT_TRUE(over.over_budget);
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_THAT(over.lines, Contains(HasSubstr("over budget")));
  EXPECT_THAT(over.lines, Contains(HasSubstr("1 B more than")));
  facts.exit_code = 3;
  EXPECT_EQ(Judge(facts).exit_code, 3) << "the program's status is never hidden";
}

TEST(Verdict, AProgramThatFailedOrWasStoppedGetsNone) {
  DryRunFacts facts = Facts({Device(10 * kGiB)});
  facts.exit_code = 5;
  EXPECT_EQ(Judge(facts).fit, Fit::kUnknown);
  EXPECT_EQ(Judge(facts).exit_code, 5);
  EXPECT_THAT(Judge(facts).lines, Contains(HasSubstr("no verdict: the program ended with status 5")));

  facts.exit_code = 143;
  facts.stop = launch::TimedOut{std::chrono::minutes(30)};
  EXPECT_EQ(Judge(facts).exit_code, 124);
  EXPECT_THAT(Judge(facts).lines, Contains("stopped: the time-out of 30 min is over (--timeout)"));

  facts.stop = launch::Overwrite{.process = 4, .file = "/w/m.pt", .deed = "open /w/m.pt for writing"};
  EXPECT_EQ(Judge(facts).exit_code, 1);
  EXPECT_THAT(Judge(facts).lines, Contains("stopped: process 4 was about to open /w/m.pt for writing"));

  facts.stop = launch::HostMemoryWatch::Shortage{.used_bytes = 9 * kGiB, .limit_bytes = 8 * kGiB};
  EXPECT_EQ(Judge(facts).exit_code, 1);
  EXPECT_THAT(Judge(facts).lines, Contains(HasSubstr("held 9.00 GiB of host memory")));
}

TEST(Verdict, WithoutTheGpuThereIsNone) {
  DryRunFacts facts;
  facts.exit_code = 0;
  facts.budget_bytes = 1;
  const DryRunVerdict verdict = Judge(facts);
  EXPECT_EQ(verdict.fit, Fit::kUnknown);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_THAT(verdict.lines, Contains(HasSubstr("did not use the simulated GPU")));
}

TEST(Verdict, NamesDevicesAndProcessesThatShareOne) {
  auto second = Device(4 * kGiB);
  second.index = 1;
  DryRunFacts facts = Facts({Device(3 * kGiB), second});
  EXPECT_THAT(Judge(facts).lines, Contains(HasSubstr("NVIDIA Test (device 1): peak device used 4.00 GiB")));
  facts.processes.push_back({.process = 2, .devices = {Device(5 * kGiB)}, .invented = {}});
  const auto lines = Judge(facts).lines;
  EXPECT_THAT(lines, Contains(HasSubstr("(device 0): peak device used 5.00 GiB")));
  EXPECT_THAT(lines, Contains(HasSubstr("at once on one card they would need up to 8.00 GiB")));
}

TEST(Verdict, SaysPyTorchsPeaksAndHowFarTheRunCame) {
  DryRunFacts facts = Facts({Device(10 * kGiB)});
  facts.trace = TraceFacts{.steps = 1, .peak_allocated = 8 * kGiB, .peak_reserved = 9 * kGiB};
  EXPECT_THAT(Judge(facts).lines,
              Contains("PyTorch's peaks: 8.00 GiB allocated, 9.00 GiB reserved; 1 optimizer step was seen"));
  facts.trace->steps = 0;
  EXPECT_THAT(Judge(facts).lines, Contains(HasSubstr("no whole optimizer step was seen")));
  for (const std::string& line : Judge(facts).lines) {
    EXPECT_THAT(line, Not(HasSubstr("second"))) << "times of a dry run mean nothing";
  }
}

TEST(Summary, HasTheFiguresInBytes) {
  DryRunFacts facts = Facts({Device(10 * kGiB, 1)});
  facts.trace = TraceFacts{.steps = 3, .peak_allocated = 8 * kGiB, .peak_reserved = 9 * kGiB};
  facts.budget_bytes = 9 * kGiB;
  facts.processes[0].invented = {{.effect = "shape", .where = "train.py:3", .what = "item()", .reads = 2}};
  const auto json = Summarise("rtx4090", facts, Judge(facts));
  EXPECT_EQ(json["verdict"], "fits");
  EXPECT_EQ(json["exit_code"], 1) << "over budget";
  EXPECT_EQ(json["program_exit_code"], 0);
  EXPECT_EQ(json["over_budget"], true);
  EXPECT_EQ(json["gpu"], "rtx4090");
  EXPECT_EQ(json["pytorch"]["peak_reserved_bytes"], 9 * kGiB);
  ASSERT_EQ(json["devices"].size(), 1U);
  EXPECT_EQ(json["devices"][0]["peak_used_bytes"], 10 * kGiB);
  EXPECT_EQ(json["devices"][0]["high_estimate_bytes"], HighEstimate(facts, Device(10 * kGiB)));
  EXPECT_EQ(json["devices"][0]["refused_allocations"], 1);
  EXPECT_EQ(json["invented_reads"][0]["where"], "train.py:3");
  EXPECT_FALSE(json.contains("stopped"));
}

TEST(Summary, NamesWhyARunWasStopped) {
  DryRunFacts facts = Facts({});
  facts.processes.clear();
  const std::pair<launch::Stop, const char*> stops[] = {
      {launch::TimedOut{std::chrono::minutes(30)}, "time_out"},
      {launch::Overwrite{4, "/w/m.pt", "open /w/m.pt for writing"}, "overwrite"},
      {launch::HostMemoryWatch::Shortage{.used_bytes = 9 * kGiB, .limit_bytes = kGiB}, "host_memory"},
      {launch::LeftRunning{1}, "left_running"}};
  for (const auto& [stop, name] : stops) {
    facts.stop = stop;
    const auto json = Summarise("l4", facts, Judge(facts));
    EXPECT_EQ(json["stopped"], name);
    EXPECT_EQ(json["verdict"], "unknown");
    EXPECT_FALSE(json.contains("pytorch"));
    EXPECT_FALSE(json.contains("budget_bytes"));
  }
}

}  // namespace
}  // namespace vramtrace::cli
