// Whole traces to whole reports: what a run of known sizes must come out as.
#include <gmock/gmock.h>

#include "analyzer/report/build.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::report {
namespace {

using ::testing::HasSubstr;
using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;

class ReportTest : public testing::FileTest {
 protected:
  v1::Report Build(TraceBuilder* builder) {
    auto built = BuildReport(Write(builder), {});
    EXPECT_TRUE(built.ok()) << built.error().Sentence();
    return built.value().report;
  }
  v1::Report Build(const TrainingOptions& options) {
    TraceBuilder builder;
    TrainingRun(options).Play(&builder);
    return Build(&builder);
  }
};

uint64_t BytesOf(const v1::Breakdown& breakdown, std::string_view key) {
  for (const v1::ClassRow& row : breakdown.classes()) {
    if (row.key() == key) return row.bytes();
  }
  return 0;
}

void ExpectIdentityHolds(const v1::Breakdown& breakdown) {
  int64_t sum = 0;
  for (const v1::Term& term : breakdown.identity().terms()) sum += term.bytes();
  EXPECT_EQ(sum, static_cast<int64_t>(breakdown.identity().device_used()));
  EXPECT_EQ(breakdown.identity().mismatch(), 0);
  uint64_t blocks = 0;
  for (const v1::ClassRow& row : breakdown.classes()) blocks += row.block_bytes();
  EXPECT_EQ(blocks, breakdown.allocated());
}

TEST_F(ReportTest, EveryByteOfAKnownRunIsInItsClass) {
  const TrainingOptions options;
  const v1::Report report = Build(options);
  ASSERT_EQ(report.devices_size(), 1);
  const v1::DeviceReport& device = report.devices(0);
  const v1::Breakdown& peak = device.at_peak();
  ExpectIdentityHolds(peak);
  // Peak: the second step's backward of the last layer, or the end of forward: weights, moments, all
  // activations, the output, the input, the last layer's gradient and scratch.
  EXPECT_EQ(BytesOf(peak, "weight"), 2 * options.weight_bytes);
  EXPECT_EQ(BytesOf(peak, "optimizer_state"), 4 * options.weight_bytes);
  EXPECT_EQ(BytesOf(peak, "gradient"), options.weight_bytes);
  EXPECT_EQ(BytesOf(peak, "activation"), 2 * options.activation_bytes);
  EXPECT_EQ(BytesOf(peak, "output"), options.activation_bytes / 2);
  EXPECT_EQ(BytesOf(peak, "input"), options.input_bytes);
  EXPECT_EQ(BytesOf(peak, "temporary"), options.temporary_bytes);
  EXPECT_EQ(BytesOf(peak, "unknown"), 0U);
  EXPECT_EQ(device.peak_allocated().bytes(), peak.allocated());
  EXPECT_EQ(device.peak_allocated().moment().step(), 1U);
  EXPECT_EQ(device.peak_allocated().moment().phase(), "backward");
  EXPECT_EQ(device.counter_check().differences(), 0U);
  EXPECT_GT(device.counter_check().comparisons(), 0U);
}

TEST_F(ReportTest, NamesAndModulesAreFound) {
  const v1::Report report = Build(TrainingOptions{});
  std::map<std::string, std::string> title_by_class;
  for (const v1::Allocation& allocation : report.devices(0).at_peak().allocations()) {
    if (allocation.class_() == "gradient") {
      EXPECT_THAT(allocation.names(), ::testing::ElementsAre("layers.1.weight"));
      EXPECT_EQ(allocation.title(), "gradient of layers.1.weight");
      // By the autograd sequence number: a backward thread has no module frames.
      EXPECT_EQ(allocation.module_path(), "layers.1");
      EXPECT_EQ(allocation.operator_(), "AddmmBackward0");
    }
    if (allocation.class_() == "optimizer_state") {
      EXPECT_FALSE(allocation.state_key().empty());
    }
    if (allocation.class_() == "activation") {
      EXPECT_EQ(allocation.module_class(), "Linear");
      EXPECT_THAT(allocation.site(), HasSubstr("model.py:3"));
      EXPECT_EQ(allocation.script(), allocation.site());
    }
  }
}

TEST_F(ReportTest, StepsInputsAndProgramAreReported) {
  const v1::Report report = Build(TrainingOptions{.steps = 3});
  EXPECT_EQ(report.steps().completed(), 3U);
  EXPECT_EQ(report.steps().batch(), 8U);
  ASSERT_EQ(report.steps().inputs_size(), 1);
  EXPECT_EQ(report.steps().inputs(0).name(), "input_ids");
  EXPECT_THAT(report.steps().optimizers(), ::testing::ElementsAre("AdamW"));
  EXPECT_EQ(report.program().pid(), 4711U);
  EXPECT_EQ(report.devices(0).step_peak_allocated_size(), 3);
  EXPECT_TRUE(report.trace().complete());
}

TEST_F(ReportTest, OutOfMemoryInALaterStepUsesWhatEarlierStepsTaught) {
  const TrainingOptions options{.fail_at_layer = 1, .fail_at_step = 1};
  const v1::Report report = Build(options);
  const v1::DeviceReport& device = report.devices(0);
  ASSERT_TRUE(device.has_out_of_memory());
  EXPECT_EQ(device.out_of_memory().reason(), "shortage");
  EXPECT_EQ(device.out_of_memory().requested(), options.total_bytes);
  EXPECT_EQ(device.out_of_memory().moment().step(), 1U);
  EXPECT_EQ(device.out_of_memory().moment().module_path(), "layers.1");
  const v1::Breakdown& live = device.at_refusal();
  ExpectIdentityHolds(live);
  // The unwinding frees after the refusal must not make activations look like something the script let go.
  EXPECT_EQ(BytesOf(live, "activation"), options.activation_bytes);
  EXPECT_EQ(BytesOf(live, "input"), options.input_bytes);
  EXPECT_EQ(BytesOf(live, "output"), 0U);
  for (const v1::Allocation& allocation : live.allocations()) {
    if (allocation.class_() == "activation") {
      EXPECT_THAT(allocation.evidence(), HasSubstr("same call site"));
    }
  }
}

TEST_F(ReportTest, OutOfMemoryInTheFirstForwardIsExplainedToo) {
  const TrainingOptions options{.fail_at_layer = 1, .fail_at_step = 0};
  const v1::Report report = Build(options);
  const v1::Breakdown& live = report.devices(0).at_refusal();
  ExpectIdentityHolds(live);
  EXPECT_EQ(BytesOf(live, "activation"), options.activation_bytes);
  EXPECT_EQ(BytesOf(live, "weight"), 2 * options.weight_bytes);
  EXPECT_EQ(report.steps().completed(), 0U);
}

TEST_F(ReportTest, CaughtOutOfMemoryIsANoteAndNotTheEnd) {
  TraceBuilder builder;
  TrainingRun(TrainingOptions{}).Play(&builder);
  const auto last = TraceBuilder::kBaseAddress + (uint64_t{1} << 36);
  builder.OutOfMemory({.bytes = uint64_t{1} << 40});
  builder.Allocate({.address = last, .bytes = 512});
  const v1::Report report = Build(&builder);
  EXPECT_FALSE(report.devices(0).has_out_of_memory());
  bool noted = false;
  for (const v1::Note& note : report.notes()) noted |= note.key() == "SurvivedOutOfMemory";
  EXPECT_TRUE(noted);
}

TEST_F(ReportTest, WithoutLabelsRulesStillFindWeightsAndStates) {
  const TrainingOptions options{.labels = false};
  const v1::Report report = Build(options);
  const v1::Breakdown& peak = report.devices(0).at_peak();
  ExpectIdentityHolds(peak);
  EXPECT_EQ(BytesOf(peak, "weight"), 2 * options.weight_bytes);           // under Module._apply
  EXPECT_EQ(BytesOf(peak, "optimizer_state"), 4 * options.weight_bytes);  // kept after its step
  EXPECT_EQ(BytesOf(peak, "gradient"), options.weight_bytes);             // freed by zero_grad
  for (const v1::ClassRow& row : peak.classes()) {
    if (row.key() == "weight") {
      EXPECT_EQ(row.unsure_bytes(), row.bytes());
    }
  }
}

TEST_F(ReportTest, DriverOnlyProgramIsReportedByItsDriverAllocations) {
  TraceBuilder builder;
  builder.Query(900, 1000, vramtrace::v1::MemoryQuery::REASON_CONTEXT);
  builder.DriverAllocate(TraceBuilder::kBaseAddress, 300, "myprogram");
  const v1::Report report = Build(&builder);
  const v1::DeviceReport& device = report.devices(0);
  EXPECT_EQ(device.block_allocations(), 0U);
  ExpectIdentityHolds(device.at_peak());
  EXPECT_EQ(device.at_peak().identity().device_used(), 400U);
}

TEST_F(ReportTest, RefusalOfALibraryEndsTheRunToo) {
  TraceBuilder builder;
  builder.Query(900, 1000, vramtrace::v1::MemoryQuery::REASON_CONTEXT);
  builder.DriverAllocate(TraceBuilder::kBaseAddress, 300, "libnccl.so.2");
  builder.DriverAllocate(0, 5000, "libnccl.so.2", 2);
  const v1::Report report = Build(&builder);
  ASSERT_TRUE(report.devices(0).has_out_of_memory());
  EXPECT_FALSE(report.devices(0).out_of_memory().caching_allocator());
}

TEST_F(ReportTest, EveryDeviceHasItsOwnPeak) {
  TraceBuilder builder;
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 1024, .device = 0});
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 4096, .device = 1});
  const v1::Report report = Build(&builder);
  ASSERT_EQ(report.devices_size(), 2);
  EXPECT_EQ(report.devices(0).peak_allocated().bytes(), 1024U);
  EXPECT_EQ(report.devices(1).peak_allocated().bytes(), 4096U);
}

TEST_F(ReportTest, MissingBlocksShowAsTheDifferenceToPyTorchsCounter) {
  TraceBuilder builder;
  builder.DriverAllocate(TraceBuilder::kBaseAddress, 2 << 20);
  builder.Allocate({.address = TraceBuilder::kBaseAddress,
                    .bytes = 1024,
                    .requested = 1024,
                    .allocated_total = 1024 + 512,
                    .reserved_total = 2 << 20});
  const v1::Report report = Build(&builder);
  ExpectIdentityHolds(report.devices(0).at_peak());
  EXPECT_EQ(report.devices(0).counter_check().largest_allocated_difference(), 512);
  bool noted = false;
  for (const v1::Note& note : report.notes()) noted |= note.key() == "AllocatedDiffers";
  EXPECT_TRUE(noted);
}

TEST_F(ReportTest, LossesAndMissingFeaturesAreNotes) {
  TraceBuilder builder;
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 1024});
  builder.AddFeature("requested_sizes", false, "the allocator's table is not as known");
  vramtrace::v1::Packet loss;
  loss.mutable_loss()->set_reason(vramtrace::v1::Loss::REASON_DISK_FULL);
  loss.mutable_loss()->set_events(12);
  builder.Add(loss, true);
  const v1::Report report = Build(&builder);
  std::string all;
  for (const v1::Note& note : report.notes()) all += note.text() + "\n";
  EXPECT_THAT(all, HasSubstr("lost 12 events: the disk was full"));
  EXPECT_THAT(all, HasSubstr("without requested_sizes: the allocator's table"));
  EXPECT_THAT(all, HasSubstr("no end mark"));
}

TEST_F(ReportTest, TraceWithoutEventsIsASentence) {
  TraceBuilder builder;
  builder.String("alone");
  const auto built = BuildReport(Write(&builder), {});
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.error().message, HasSubstr("no events"));
}

}  // namespace
}  // namespace vramtrace::report
