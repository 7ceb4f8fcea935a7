// `vramtrace estimate` as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analyzer/cli/subcommand.h"

namespace vramtrace::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome Estimate(std::vector<const char*> words) {
  words.insert(words.begin(), {"vramtrace", "estimate"});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = RunCommandLine(static_cast<int>(words.size()), words.data());
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(EstimateCommand, AnswersWithMemoryAndCardsOnAScreen) {
  const Outcome outcome = Estimate({"7b", "--method", "qlora", "--checkpointing", "--currency", "CNY"});
  EXPECT_EQ(outcome.code, kDone) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("6,738,415,616 parameters"), HasSubstr("QLoRA (NF4), rank 16"),
                                 HasSubstr("money in CNY"), HasSubstr("self-service marketplace")));
  EXPECT_LE(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 50);
}

TEST(EstimateCommand, JudgesACardByItsExitStatus) {
  EXPECT_EQ(Estimate({"7b", "--method", "qlora", "--checkpointing", "--gpu", "rtx4090"}).code, kDone);
  const Outcome full = Estimate({"7b", "--checkpointing", "--gpu", "rtx4090"});
  EXPECT_EQ(full.code, kCheckFailed);
  EXPECT_THAT(full.out, HasSubstr("rtx4090: too small. It needs"));
  EXPECT_EQ(Estimate({"7b", "--gpu", "rtx4900"}).code, kUsage);
}

TEST(EstimateCommand, GivesJsonWithEveryCard) {
  const Outcome outcome = Estimate({"8b", "--method", "inference", "--seq", "4096", "--format", "json"});
  ASSERT_EQ(outcome.code, kDone) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["parameters"], 8'030'261'248u);
  EXPECT_GT(json["gpus"]["rows"].size(), 100u);
  EXPECT_EQ(json["gpus"]["rows"][0]["verdict"], "fits");
}

TEST(EstimateCommand, CostsAWholeTraining) {
  const Outcome outcome = Estimate(
      {"1b", "--method", "lora", "--train-tokens", "1e8", "--per-week", "40", "--buy", "rtx4090=2000"});
  EXPECT_EQ(outcome.code, kDone) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("the cheapest job first"), HasSubstr("Hours on other cards are estimates"),
                    HasSubstr("rtx4090: buying at USD 2,000 pays after")));
}

TEST(EstimateCommand, RefusesWhatCannotBe) {
  const std::pair<std::vector<const char*>, const char*> usage[] = {
      {{"7b", "--batch", "0"}, "--batch"},
      {{"7b", "--method", "magic"}, "--method"},
      {{"7b", "--offload", "everything"}, "there are optimizer, parameters, checkpoints"},
      {{"7b", "--per-week", "200"}, "--per-week"},
      {{"7b", "--train-tokens", "-4"}, "--train-tokens"},
      {{"7b", "--optimizer", "adam9"}, "--optimizer"},
      {{"7b", "--buy", "rtx4090"}, "GPU=PRICE"},
      {{"7b", "--reference", "l4"}, "--hours"}};
  for (const auto& [words, says] : usage) {
    const Outcome outcome = Estimate(words);
    EXPECT_EQ(outcome.code, kUsage) << says;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(Estimate({"9000b"}).code, kBadInput);
  EXPECT_EQ(Estimate({"7b", "--pp", "64"}).code, kBadInput);
  EXPECT_EQ(Estimate({"7b", "--prices", "/no/such.csv"}).code, kBadInput);
}

class EstimateFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "config.json")
        << R"({"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100})";
  }
  void Tensors(const std::string& header, const std::string& data) {
    std::ofstream stream(folder_ / "model.safetensors", std::ios::binary);
    for (int at = 0; at < 8; ++at) stream.put(static_cast<char>(uint64_t{header.size()} >> (8 * at)));
    stream << header << data;
  }
  std::filesystem::path folder_;
};

TEST_F(EstimateFolder, ReadsTheWeightFilesBesideTheConfig) {
  Tensors(R"({"w":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]}})", std::string(64, '\0'));
  const Outcome outcome = Estimate({folder_.c_str()});
  EXPECT_EQ(outcome.code, kDone) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the weight files hold 32 elements"));
}

TEST_F(EstimateFolder, NamesAHostileWeightFile) {
  Tensors(R"({"w":{"dtype":"BF16","shape":[-4],"data_offsets":[0,8]}})", "12345678");
  const Outcome outcome = Estimate({folder_.c_str()});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("model.safetensors"), HasSubstr("tensor 'w': its shape")));
}

}  // namespace
}  // namespace vramtrace::cli
