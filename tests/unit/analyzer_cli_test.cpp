// `analyze` and `dump` as they are run: exit codes, which trace is taken, what goes where.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analyzer/cli/subcommand.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TraceBuilder;
using testing::TrainingRun;

struct Outcome {
  int code = 0;
  std::string output;
  std::string errors;
};

class AnalyzeTest : public testing::FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    FileTest::TearDown();
  }
  static Outcome Run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "vramtrace");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = RunCommandLine(static_cast<int>(arguments.size()), arguments.data());
    std::fflush(stdout);
    outcome.output = ::testing::internal::GetCapturedStdout();
    outcome.errors = ::testing::internal::GetCapturedStderr();
    return outcome;
  }
  static std::string Trace() {
    TraceBuilder builder;
    TrainingRun({}).Play(&builder);
    return builder.Bytes();
  }
  std::filesystem::path before_;
};

TEST_F(AnalyzeTest, ReportsATrace) {
  Write(Trace(), "a.vtrace");
  const Outcome outcome = Run({"analyze", "a.vtrace"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.output, HasSubstr("peak allocated"));
  EXPECT_EQ(outcome.errors, "");
}

TEST_F(AnalyzeTest, JsonIsOneObjectWithEveryLiveAllocation) {
  Write(Trace(), "a.vtrace");
  const auto json = nlohmann::json::parse(Run({"analyze", "--format", "json", "a.vtrace"}).output);
  const auto& peak = json["devices"][0]["at_peak"];
  EXPECT_EQ(peak["allocations"].size(), peak["allocation_count"].get<size_t>());
  const auto two =
      nlohmann::json::parse(Run({"analyze", "--format", "json", "--top", "2", "a.vtrace"}).output);
  EXPECT_EQ(two["devices"][0]["at_peak"]["allocations"].size(), 2U);
}

TEST_F(AnalyzeTest, NewestTraceHereIsTakenAndNamed) {
  const std::string old = Write(Trace(), "old.vtrace");
  Write(Trace(), "new.vtrace");
  std::filesystem::last_write_time(old,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  for (const char* command : {"analyze", "dump"}) {
    const Outcome outcome = Run({command});
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_THAT(outcome.errors, HasSubstr("newest trace here is new.vtrace"));
  }
}

TEST_F(AnalyzeTest, FolderOfARunIsALineAProcessAndTheFullestExplained) {
  std::filesystem::create_directory("run");
  Write(Trace(), "run/rank0.vtrace");
  TraceBuilder larger;
  TrainingRun(testing::TrainingOptions{.layers = 6}).Play(&larger);
  Write(larger.Bytes(), "run/rank1.vtrace");
  const Outcome outcome = Run({"analyze", "run"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.output, StartsWith("A run of 2 processes\n"));
  EXPECT_THAT(outcome.output, HasSubstr("has the highest peak:"));
  EXPECT_THAT(outcome.output, HasSubstr("rank1.vtrace"));
  EXPECT_EQ(outcome.output.find("rank0.vtrace"), std::string::npos);
  const auto json = nlohmann::json::parse(Run({"analyze", "run", "--format", "json"}).output);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_THAT(json[0]["trace"]["path"].get<std::string>(), HasSubstr("rank0.vtrace"));
  EXPECT_THAT(json[1]["trace"]["path"].get<std::string>(), HasSubstr("rank1.vtrace"));
  const Outcome dump = Run({"dump", "run"});
  EXPECT_EQ(dump.code, kBadInput);
  EXPECT_THAT(dump.errors, HasSubstr("2 traces; name one"));
}

// One that cannot be read is named; the others are explained all the same.
TEST_F(AnalyzeTest, FolderOfARunWithABadTraceEndsWithThree) {
  std::filesystem::create_directory("run");
  Write(Trace(), "run/a.vtrace");
  Write("not a trace", "run/b.vtrace");
  const Outcome outcome = Run({"analyze", "run"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.errors, HasSubstr("b.vtrace"));
  EXPECT_THAT(outcome.output, HasSubstr("a.vtrace"));
  const Outcome json = Run({"analyze", "run", "--format", "json"});
  EXPECT_EQ(json.code, kBadInput);
  EXPECT_EQ(nlohmann::json::parse(json.output).size(), 1U);
}

TEST_F(AnalyzeTest, NoTraceHereIsASentenceWithTheRemedy) {
  const Outcome outcome = Run({"analyze"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.errors, HasSubstr("vramtrace record"));
}

TEST_F(AnalyzeTest, BadFilesAreNamedWithOffsetAndExpectation) {
  Write("", "empty.vtrace");
  Write("something else entirely", "text.vtrace");
  for (const char* command : {"analyze", "dump"}) {
    const Outcome empty = Run({command, "empty.vtrace"});
    EXPECT_EQ(empty.code, kBadInput);
    EXPECT_THAT(empty.errors, StartsWith("vramtrace: empty.vtrace, byte 0: "));
    const Outcome text = Run({command, "text.vtrace"});
    EXPECT_EQ(text.code, kBadInput);
    EXPECT_THAT(text.errors, HasSubstr("expected the bytes VRTCHNK1"));
    const Outcome missing = Run({command, "none.vtrace"});
    EXPECT_EQ(missing.code, kBadInput);
    EXPECT_THAT(missing.errors, HasSubstr("No such file"));
  }
}

TEST_F(AnalyzeTest, TruncatedTraceIsReportedAndEndsWithThree) {
  const std::string whole = Trace();
  Write(whole.substr(0, whole.size() - 2 * 256 * 1024 + 1500), "cut.vtrace");
  const Outcome outcome = Run({"analyze", "cut.vtrace"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.output, HasSubstr("peak allocated"));
  EXPECT_THAT(outcome.errors, HasSubstr("cut.vtrace: The file was cut"));
}

TEST_F(AnalyzeTest, WrongUsageIsTwo) {
  EXPECT_EQ(Run({"analyze", "--format", "xml"}).code, kUsage);
  EXPECT_EQ(Run({"analyze", "a", "b"}).code, kUsage);
  EXPECT_EQ(Run({"dump", "--nonsense"}).code, kUsage);
}

TEST_F(AnalyzeTest, HelpHasAnExample) {
  for (const char* command : {"analyze", "dump"}) {
    const Outcome outcome = Run({command, "--help"});
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_THAT(outcome.output, HasSubstr("Example:\n  vramtrace "));
  }
}

TEST_F(AnalyzeTest, AnotherInstantIsExplained) {
  Write(Trace(), "a.vtrace");
  const Outcome outcome = Run({"analyze", "a.vtrace", "--at", "step:1,forward"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.output, HasSubstr("What filled it at step:1,forward ("));
}

TEST_F(AnalyzeTest, AnInstantThatIsNoneIsAUsageError) {
  Write(Trace(), "a.vtrace");
  const Outcome wrong = Run({"analyze", "a.vtrace", "--at", "yesterday"});
  EXPECT_EQ(wrong.code, kUsage);
  EXPECT_THAT(wrong.errors, HasSubstr("yesterday: no instant; expected peak, oom"));
  const Outcome absent = Run({"analyze", "a.vtrace", "--at", "step:99"});
  EXPECT_EQ(absent.code, kUsage);
  EXPECT_THAT(absent.errors, HasSubstr("no instant \"step:99\" on any device"));
}

TEST_F(AnalyzeTest, TablesReplaceTheLargestAllocations) {
  Write(Trace(), "a.vtrace");
  const Outcome outcome = Run({"analyze", "a.vtrace", "--by", "module,segment,step"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.output, HasSubstr("By module"));
  EXPECT_THAT(outcome.output, HasSubstr("Segments of the caching allocator"));
  EXPECT_THAT(outcome.output, HasSubstr("By step"));
  EXPECT_THAT(outcome.output, ::testing::Not(HasSubstr("live allocations")));
  EXPECT_EQ(Run({"analyze", "a.vtrace", "--by", "colour"}).code, kUsage);
}

TEST_F(AnalyzeTest, TwoInstantsAreCompared) {
  Write(Trace(), "a.vtrace");
  const Outcome outcome =
      Run({"analyze", "a.vtrace", "--diff-at", "step:0,forward", "--at", "step:1,backward"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.output, HasSubstr("Between them"));
  EXPECT_THAT(outcome.output, HasSubstr("By class"));
}

TEST_F(AnalyzeTest, StacksAreWrittenForFlameGraphs) {
  Write(Trace(), "a.vtrace");
  EXPECT_EQ(Run({"analyze", "a.vtrace", "--folded", "stacks.txt"}).code, kDone);
  std::ifstream file("stacks.txt");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_THAT(line, ::testing::ContainsRegex(" [0-9]+$"));
  EXPECT_EQ(Run({"analyze", "a.vtrace", "--folded", "missing/stacks.txt"}).code, kBadInput);
}

TEST_F(AnalyzeTest, JsonHasTheViews) {
  Write(Trace(), "a.vtrace");
  const auto json = nlohmann::json::parse(Run({"analyze", "a.vtrace", "--format", "json"}).output);
  const auto& device = json["devices"][0];
  EXPECT_GT(device["at_peak"]["views"]["modules"].size(), 2U);
  EXPECT_GT(device["steps"].size(), 1U);
  EXPECT_FALSE(device["local_peaks"].empty());
}

}  // namespace
}  // namespace vramtrace::cli
