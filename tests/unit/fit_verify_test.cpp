#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "analyzer/fit/verify.h"
#include "tests/unit/fit_streams.h"

namespace vramtrace::fit {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using Words = std::vector<std::string>;

constexpr Bytes kMiB = Bytes{1} << 20;

struct Once : Runner {
  RunRequest asked;
  RunResult answer;
  RunResult Run(const RunRequest& request) override {
    asked = request;
    return answer;
  }
};

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    auto stream = std::make_shared<forecast::Stream>(testing::MakeStream({}, 16));
    prediction_.batch = 16;
    prediction_.stream = stream;
    prediction_.outcome.allocated.bytes = 1000 * kMiB;
    prediction_.outcome.reserved.bytes = 1200 * kMiB;
    prediction_.band = {.allocated_low = -0.01,
                        .allocated_high = 0.01,
                        .reserved_low = -0.01,
                        .reserved_high = 0.01,
                        .elsewhere_low = 0,
                        .elsewhere_high = 0};
    request_.gpu = catalogue::FindGpu("rtx4090");
    request_.prediction = &prediction_;
    request_.recorded_batch = 8;
    request_.command = {"python", "train.py", "--batch", "{batch}"};
    runner_.answer.end = End::kCompleted;
    runner_.answer.peak_allocated = 1000 * kMiB;
    runner_.answer.peak_reserved = 1200 * kMiB;
  }
  Verification Result() { return std::get<Verification>(Verify(request_, &runner_)); }
  std::string Refusal() { return std::get<std::string>(Verify(request_, &runner_)); }
  // Rows of the test's own: which techniques there are is the table's business.
  void Choose(std::string_view key, uint32_t every = 1) {
    forecast::Technique& row = rows_.emplace_back();
    row.key = key;
    forecast::TechniqueOptions options;
    options.every = every;
    prediction_.techniques.push_back({&row, options});
  }

  std::deque<forecast::Technique> rows_;

  forecast::Prediction prediction_;
  VerifyRequest request_;
  Once runner_;
};

TEST_F(VerifyTest, RunsTheBatchWithoutALimitAndSetsBothSideBySide) {
  const Verification result = Result();
  EXPECT_EQ(runner_.asked.command, (Words{"python", "train.py", "--batch", "16"}));
  EXPECT_GE(runner_.asked.total, Bytes{1} << 40);
  EXPECT_TRUE(runner_.asked.environment.empty());
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.allocated_in_band);
  EXPECT_TRUE(result.reserved_in_band);
  EXPECT_THAT(result.words, HasSubstr("forecast"));
  EXPECT_THAT(result.words, HasSubstr("+0.00 %"));
}

TEST_F(VerifyTest, SaysWhenTheRunLiesOutsideTheBand) {
  runner_.answer.peak_reserved = 1300 * kMiB;
  const Verification result = Result();
  EXPECT_TRUE(result.allocated_in_band);
  EXPECT_FALSE(result.reserved_in_band);
  EXPECT_THAT(result.words, HasSubstr("-7.69 %"));
  EXPECT_THAT(result.words, HasSubstr("outside the forecast's band"));
}

TEST_F(VerifyTest, GuessesThePlaceholderOfARecordedCommand) {
  request_.command = {"python", "train.py", "--batch-size=8", "--lr", "8"};
  EXPECT_THAT(Refusal(), HasSubstr("no placeholder"));
  request_.command_was_recorded = true;
  EXPECT_TRUE(Result().ok());
  EXPECT_EQ(runner_.asked.command, (Words{"python", "train.py", "--batch-size=16", "--lr", "8"}));
  request_.command = {"python", "train.py"};
  EXPECT_THAT(Refusal(), HasSubstr("no option with \"batch\" in its name and the value 8"));
}

TEST_F(VerifyTest, NeedsNoPlaceholderForTheRecordedBatch) {
  request_.command = {"python", "train.py"};
  request_.recorded_batch = 16;
  EXPECT_TRUE(Result().ok());
  EXPECT_EQ(runner_.asked.command, (Words{"python", "train.py"}));
}

TEST_F(VerifyTest, PassesTechniquesOn) {
  Choose("checkpointing", 2);
  Choose("bf16-autocast");
  EXPECT_EQ(ApplyText(prediction_.techniques), "checkpointing:every=2;bf16-autocast");
  EXPECT_TRUE(Result().ok());
  EXPECT_THAT(runner_.asked.environment,
              ::testing::ElementsAre(Pair("VRAMTRACE_APPLY", "checkpointing:every=2;bf16-autocast")));
}

TEST_F(VerifyTest, MicroBatchesAreWhatTheProgramIsTold) {
  Choose("gradient-accumulation");
  prediction_.techniques.back().options.steps = 4;
  (void)Result();
  EXPECT_EQ(runner_.asked.command, (Words{"python", "train.py", "--batch", "4"}));
  EXPECT_THAT(runner_.asked.environment,
              ::testing::Contains(Pair("VRAMTRACE_APPLY", "gradient-accumulation:steps=4")));
}

TEST_F(VerifyTest, SettingsOfTheAllocatorGoIntoTheEnvironment) {
  auto stream = std::make_shared<forecast::Stream>(*prediction_.stream);
  stream->facts.allocator_settings = "max_split_size_mb:64";
  prediction_.stream = stream;
  Choose("expandable-segments");
  EXPECT_TRUE(Result().ok());
  const std::string both = "max_split_size_mb:64,expandable_segments:True";
  EXPECT_THAT(runner_.asked.environment, ::testing::ElementsAre(Pair("PYTORCH_CUDA_ALLOC_CONF", both),
                                                                Pair("PYTORCH_ALLOC_CONF", both)));
}

TEST_F(VerifyTest, SaysWhyThereIsNoResult) {
  runner_.answer.end = End::kFailed;
  runner_.answer.exit_code = 2;
  runner_.answer.last_lines = {"vramtrace: checkpointing: no repeated blocks"};
  EXPECT_FALSE(Result().ok());
  EXPECT_THAT(Result().words, HasSubstr("ended with status 2"));
  EXPECT_THAT(Result().words, HasSubstr("  | vramtrace: checkpointing: no repeated blocks"));
  runner_.answer.end = End::kCompleted;
  runner_.answer.peak_allocated = 0;
  EXPECT_THAT(Result().words, HasSubstr("did not use PyTorch's caching allocator"));
}

}  // namespace
}  // namespace vramtrace::fit
