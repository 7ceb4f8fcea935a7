// The list of diagnoses, and what they say of traces of known sizes.
#include <gmock/gmock.h>

#include <set>

#include "analyzer/diagnose/diagnose.h"
#include "analyzer/diagnose/finding.h"
#include "analyzer/report/build.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::diagnose {
namespace {

using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;

TEST(DiagnoseRows, EachSaysWhatItLooksForAndNeeds) {
  std::set<std::string_view> ids;
  std::set<std::string_view> keys;
  for (const Row& row : Rows()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_NE(row.decide, nullptr) << row.id;
    for (const std::string_view text : {row.title, row.signature, row.needs, row.confidence, row.limits}) {
      EXPECT_FALSE(text.empty()) << row.id;
    }
  }
  EXPECT_EQ(ids.size(), 25U);
}

TEST(DiagnoseRows, EnvironmentComesFirst) {
  EXPECT_EQ(Rows()[0].id, "D25");
  EXPECT_EQ(Rows()[1].id, "D20");
  EXPECT_EQ(Rows()[2].id, "D19");
  EXPECT_EQ(Rows()[3].id, "D18");
}

TEST(DiagnoseLine, FitsAStraightLineAndANoisyOne) {
  const Line straight = FitLine({10, 12, 14, 16});
  EXPECT_DOUBLE_EQ(straight.slope, 2);
  EXPECT_NEAR(straight.fit, 1, 1e-12);
  const Line noisy = FitLine({0, 5, 0, 5, 0, 5});
  EXPECT_LT(noisy.fit, 0.2);
  EXPECT_EQ(FitLine({7, 7, 7}).fit, 0);
  EXPECT_EQ(FitLine({7}).slope, 0);
}

TEST(DiagnoseLayers, TheFirstNumberOfAPathIsTheLayer) {
  std::string stem;
  uint64_t number = 0;
  EXPECT_TRUE(LayerOf("transformer.h.12.mlp.0", &stem, &number));
  EXPECT_EQ(stem, "transformer.h.");
  EXPECT_EQ(number, 12U);
  EXPECT_TRUE(LayerOf("3", &stem, &number));
  EXPECT_EQ(stem, "");
  EXPECT_FALSE(LayerOf("head", &stem, &number));
  EXPECT_FALSE(LayerOf("", &stem, &number));
  EXPECT_FALSE(LayerOf("h.99999999999999999999999", &stem, &number));
}

class DiagnoseTest : public testing::FileTest {
 protected:
  report::v1::Report Run(TraceBuilder* builder) {
    auto built = report::BuildReport(Write(builder), {});
    EXPECT_TRUE(built.ok()) << built.error().Sentence();
    report::BuiltReport& read = built.value();
    Diagnose({read.file, read.tables, read.stacks, read.scan}, {}, &read.report);
    return read.report;
  }
};

const report::v1::Diagnosis* Find(const report::v1::Report& report, std::string_view id) {
  for (const report::v1::Diagnosis& row : report.diagnoses(0).diagnoses()) {
    if (row.id() == id) return &row;
  }
  return nullptr;
}

TEST_F(DiagnoseTest, AQuietRunHasNoVerdictWithHighConfidence) {
  TraceBuilder builder;
  TrainingRun(TrainingOptions{}).Play(&builder);
  const report::v1::Report report = Run(&builder);
  ASSERT_EQ(report.diagnoses_size(), 1);
  EXPECT_EQ(report.diagnoses(0).diagnoses_size(), 25);
  for (const report::v1::Diagnosis& row : report.diagnoses(0).diagnoses()) {
    EXPECT_NE(row.confidence(), "high") << row.id() << ": " << row.sentence();
  }
}

TEST_F(DiagnoseTest, ShownBytesAndTheRestAreWhatTheDeviceHeld) {
  TraceBuilder builder;
  TrainingRun(TrainingOptions{}).Play(&builder);
  const report::v1::Report report = Run(&builder);
  const report::v1::DeviceDiagnoses& device = report.diagnoses(0);
  uint64_t sum = device.rest();
  int shown = 0;
  for (const report::v1::Diagnosis& row : device.diagnoses()) {
    sum += row.shown() ? row.own_bytes() : 0;
    shown += row.shown() ? 1 : 0;
  }
  EXPECT_EQ(sum, device.used());
  EXPECT_LE(shown, kMostShown);
}

TEST_F(DiagnoseTest, ARefusedFragmentedRequestIsFragmentationWithoutTheSettingThatIsOn) {
  for (const bool on : {false, true}) {
    TraceBuilder builder;
    constexpr uint64_t kMiB = uint64_t{1} << 20;
    constexpr uint64_t kAt = TraceBuilder::kBaseAddress;
    if (on) {
      v1::Process process;
      process.add_environment("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
      builder.AddProcess(process);
    }
    const uint32_t stack = builder.Stack({{"train.py", 3, "main"}});
    builder.Query(900 * kMiB, 1000 * kMiB, v1::MemoryQuery::REASON_CONTEXT);
    builder.DriverAllocate(kAt, 400 * kMiB);
    builder.Allocate({.address = kAt, .bytes = 150 * kMiB, .requested = 150 * kMiB, .stack = stack});
    builder.Allocate({.address = kAt + 190 * kMiB, .bytes = 2 * kMiB, .requested = 2 * kMiB, .stack = stack});
    builder.Free({.address = kAt, .stack = stack});
    builder.Query(10 * kMiB, 1000 * kMiB, v1::MemoryQuery::REASON_OUT_OF_MEMORY);
    builder.OutOfMemory({.bytes = 300 * kMiB, .requested = 300 * kMiB, .stack = stack});
    const report::v1::Report report = Run(&builder);
    const report::v1::Diagnosis* found = Find(report, "D01");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->state(), "found");
    EXPECT_EQ(found->confidence(), "high");
    bool named = false;
    for (const report::v1::Remedy& remedy : found->remedies()) {
      named = named || remedy.change().find("expandable_segments") != std::string::npos;
    }
    EXPECT_EQ(named, !on);
  }
}

TEST_F(DiagnoseTest, RefusedHostMemoryIsNotTheCards) {
  TraceBuilder builder;
  TrainingRun(TrainingOptions{}).Play(&builder);
  const report::v1::Report quiet = Run(&builder);
  EXPECT_EQ(Find(quiet, "D25")->state(), "absent");
}

}  // namespace
}  // namespace vramtrace::diagnose
