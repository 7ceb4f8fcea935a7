// A recorded run forecast to other batches and cards. The truth is the same run recorded at that batch.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "analyzer/forecast/build_stream.h"
#include "analyzer/forecast/planner.h"
#include "analyzer/report/forecast.h"
#include "tests/support/training_run.h"

namespace vramtrace::forecast {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ForecastPlannerTest : public ::testing::Test {
 protected:
  ForecastPlannerTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("vramtrace-planner-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  ~ForecastPlannerTest() override { std::filesystem::remove_all(folder_); }

  std::string Record(uint64_t batch, testing::TrainingOptions options = {}) {
    options.layers = 3;
    options.weight_bytes = 6 * kMiB;  // no batch below has results of its size, or of half of it
    options.steps = std::max(options.steps, 3);
    options.batch = static_cast<int64_t>(batch);
    options.activation_bytes = batch * kMiB + 4096;  // a part that does not grow, as a logsumexp's padding
    options.temporary_bytes = batch * kMiB / 4;
    options.input_bytes = batch * 128 * 1024;
    testing::TraceBuilder builder;
    testing::TrainingRun(options).Play(&builder);
    const std::string path = (folder_ / (std::to_string(batch) + ".vtrace")).string();
    builder.Write(path);
    return path;
  }

  static std::shared_ptr<Planner> PlannerOf(const std::vector<std::string>& paths) {
    std::vector<Stream> streams;
    for (const std::string& path : paths) streams.push_back(BuildStream(path, {}).value());
    return Planner::Make(std::move(streams)).value();
  }
  // What the run itself takes by the allocator's rules (the run's own allocator is simpler than PyTorch's).
  static uint64_t TruthOf(const std::string& path) {
    const Stream stream = BuildStream(path, {}).value();
    return Replay(stream, OptionsOf(stream.facts).value()).allocated.bytes;
  }

  std::filesystem::path folder_;
};

TEST_F(ForecastPlannerTest, ReadsTheRunsFacts) {
  const auto planner = PlannerOf({Record(8)});
  EXPECT_EQ(planner->facts().batch, 8U);
  EXPECT_EQ(planner->facts().context, 300 * kMiB);
  EXPECT_EQ(planner->facts().steps, 3U);
  EXPECT_TRUE(planner->facts().simulated);
}

TEST_F(ForecastPlannerTest, TwoRecordingsGiveOtherBatchesToTheByte) {
  const auto planner = PlannerOf({Record(4), Record(8)});
  for (const uint64_t batch : {2, 12, 16, 64}) {
    EXPECT_EQ(planner->Predict(batch, {}).outcome.allocated.bytes, TruthOf(Record(batch))) << batch;
  }
  EXPECT_EQ(planner->alignment().share(), 1.0);
  EXPECT_EQ(planner->EvidenceFor(16, {}).basis, Basis::kTwoRecordings);
  EXPECT_EQ(planner->EvidenceFor(4, {}).basis, Basis::kRecording);
}

TEST_F(ForecastPlannerTest, OneRecordingIsNearAndItsBandHoldsTheTruth) {
  const auto planner = PlannerOf({Record(8)});
  const Prediction& prediction = planner->Predict(16, {});
  const auto truth = static_cast<double>(TruthOf(Record(16)));
  const auto predicted = static_cast<double>(prediction.outcome.allocated.bytes);
  EXPECT_NEAR(predicted / truth, 1.0, 0.001);
  EXPECT_GE(predicted * (1 + prediction.band.allocated_high), truth);
  EXPECT_LE(predicted * (1 + prediction.band.allocated_low), truth);
}

TEST_F(ForecastPlannerTest, OneSampleHasAWiderBand) {
  const auto one = PlannerOf({Record(1)});
  const auto eight = PlannerOf({Record(8)});
  EXPECT_EQ(one->EvidenceFor(16, {}).basis, Basis::kOneSample);
  EXPECT_GT(one->Predict(16, {}).band.allocated_high, 2 * eight->Predict(16, {}).band.allocated_high);
}

TEST_F(ForecastPlannerTest, TheLargestBatchFitsAndTheNextDoesNot) {
  const auto planner = PlannerOf({Record(4), Record(8)});
  const Card card = CapacityCard(1024 * kMiB, planner->facts());
  const std::optional<uint64_t> largest = planner->LargestBatch(card, {});
  ASSERT_TRUE(largest.has_value());
  EXPECT_GT(*largest, 8U);
  EXPECT_EQ(planner->JudgeOn(planner->Predict(*largest, {}), card).verdict, Verdict::kFits);
  EXPECT_NE(planner->JudgeOn(planner->Predict(*largest + 1, {}), card).verdict, Verdict::kFits);
  EXPECT_EQ(planner->LargestBatch(CapacityCard(310 * kMiB, planner->facts()), {}), std::nullopt);
  EXPECT_EQ(planner->LargestBatch(CapacityCard(uint64_t{1} << 60, planner->facts()), {}),
            std::optional<uint64_t>(Planner::kMostBatch));
}

TEST_F(ForecastPlannerTest, RefusesPairsThatTellNothing) {
  const Stream four = BuildStream(Record(4), {}).value();
  const auto same = Planner::Make({four, four});
  ASSERT_FALSE(same.ok());
  EXPECT_NE(same.error().message.find("batch 4, as the other"), std::string::npos);
  Stream unknown = four;
  unknown.batch = 0;
  EXPECT_FALSE(Planner::Make({four, unknown}).ok());
  Stream other = BuildStream(Record(8), {}).value();
  for (Site& site : other.sites) ++site.key;
  const auto strangers = Planner::Make({four, other});
  ASSERT_FALSE(strangers.ok());
  EXPECT_NE(strangers.error().message.find("not two runs of one program"), std::string::npos);
}

TEST_F(ForecastPlannerTest, TheReportSaysWhatIsMissing) {
  testing::TrainingOptions options;
  options.fail_at_layer = 1;
  const std::string path = Record(8, options);
  const auto planner = PlannerOf({path});
  const report::v1::Forecast made = report::MakeForecast(*planner, {path}, {});
  bool said = false;
  for (const report::v1::Note& note : made.notes()) said = said || note.key() == "steps";
  EXPECT_TRUE(said);
  const std::string text = report::ForecastText(made, {});
  EXPECT_NE(text.find("Record it on a larger card"), std::string::npos);
}

TEST_F(ForecastPlannerTest, TextSaysTheVerdictTheBatchAndTheCards) {
  const auto planner = PlannerOf({Record(4), Record(8)});
  report::ForecastQuestion question;
  question.card = CatalogueCard(*catalogue::FindGpu("rtx4090"), planner->facts());
  question.batch = 16;
  const report::v1::Forecast made = report::MakeForecast(*planner, {"a", "b"}, question);
  EXPECT_EQ(made.prediction().verdict(), "fits");
  EXPECT_TRUE(made.has_largest_batch());
  EXPECT_GT(made.cards_size(), 40);
  const std::string text = report::ForecastText(made, {});
  for (const char* words :
       {"Forecast: batch 16 on rtx4090", "Largest batch that fits rtx4090", "Cards that hold it"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace vramtrace::forecast
