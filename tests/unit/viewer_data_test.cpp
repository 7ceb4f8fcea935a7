// What the viewer is given against what `analyze` reports of the same trace: to the byte, block by block.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "analyzer/report/build.h"
#include "analyzer/viewer_data/build.h"
#include "analyzer/viewer_data/curve.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"
#include "tests/unit/viewer_data_file.h"

namespace vramtrace::viewer_data {
namespace {

using report::v1::Allocation;
using report::v1::Breakdown;
using report::v1::ClassRow;
using testing::DataFile;
using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;

class ViewerDataTest : public testing::FileTest {
 protected:
  // The report with every allocation, and the viewer's file.
  struct Both {
    report::v1::Report report;
    DataFile data;
  };
  Both Build(TraceBuilder* builder, const FileOptions& options = {}) {
    const std::string path = Write(builder);
    auto report = report::BuildReport(path, {});
    EXPECT_TRUE(report.ok()) << report.error().Sentence();
    auto data = ViewerData::Build(path);
    EXPECT_TRUE(data.ok()) << data.error().Sentence();
    return {report.value().report, DataFile(data.value()->Write(options).bytes)};
  }
  Both Build(const TrainingOptions& options, const FileOptions& data_options = {}) {
    TraceBuilder builder;
    TrainingRun(options).Play(&builder);
    return Build(&builder, data_options);
  }
};

// Every live block of the breakdown is one row with the same size, class, confidence, evidence and title.
void ExpectSameBlocks(const DataFile& data, uint32_t device, const std::string& mark,
                      const Breakdown& breakdown) {
  const int64_t tick = data.Mark(device, mark);
  ASSERT_GE(tick, 0) << mark;
  const std::vector<size_t> rows = data.Alive(device, static_cast<uint32_t>(tick));
  ASSERT_EQ(rows.size(), breakdown.allocation_count());
  std::map<double, size_t> by_address;
  const std::vector<double> address = data.Column("block.address");
  for (const size_t row : rows) by_address[address[row]] = row;
  const auto bytes = data.Column("block.bytes");
  const auto block_bytes = data.Column("block.block_bytes");
  const auto memory_class = data.Column("block.class");
  const auto confidence = data.Column("block.confidence");
  const auto evidence = data.Column("block.evidence");
  const auto title = data.Column("block.title");
  const auto module = data.Column("block.module");
  for (const Allocation& allocation : breakdown.allocations()) {
    const auto found = by_address.find(static_cast<double>(allocation.address()));
    ASSERT_NE(found, by_address.end()) << allocation.DebugString();
    const size_t row = found->second;
    EXPECT_EQ(bytes[row], static_cast<double>(allocation.bytes()));
    EXPECT_EQ(block_bytes[row], static_cast<double>(allocation.block_bytes()));
    EXPECT_EQ(data.header()["classes"][static_cast<size_t>(memory_class[row])]["key"], allocation.class_());
    EXPECT_EQ(data.header()["confidences"][static_cast<size_t>(confidence[row])], allocation.confidence());
    EXPECT_EQ(data.Text(evidence[row]), allocation.evidence());
    EXPECT_EQ(data.Text(title[row]), allocation.title());
    EXPECT_EQ(data.Text(module[row]), allocation.module_path());
  }
}

// The curve at the mark: bands are the report's classes, and together what is allocated.
void ExpectSameCurve(const DataFile& data, uint32_t device, const std::string& mark,
                     const Breakdown& breakdown) {
  const std::string prefix = "curve" + std::to_string(device) + ".";
  const std::vector<double> ticks = data.Column(prefix + "highest_tick");
  const auto found = std::find(ticks.begin(), ticks.end(), static_cast<double>(data.Mark(device, mark)));
  ASSERT_NE(found, ticks.end());
  const auto bucket = static_cast<size_t>(found - ticks.begin());
  EXPECT_EQ(data.Column(prefix + "highest")[bucket], static_cast<double>(breakdown.allocated()));
  double sum = 0;
  const nlohmann::json& classes = data.header()["classes"];
  for (size_t band = 0; band < classes.size(); ++band) {
    const std::vector<double> column = data.Column(prefix + "band" + std::to_string(band));
    const double bytes = column.empty() ? 0 : column[bucket];
    sum += bytes;
    double reported = classes[band]["key"] == "rounding" ? static_cast<double>(breakdown.rounding()) : 0;
    for (const ClassRow& row : breakdown.classes()) {
      if (row.key() == classes[band]["key"]) reported = static_cast<double>(row.bytes());
    }
    EXPECT_EQ(bytes, reported) << classes[band]["key"];
  }
  EXPECT_EQ(sum, static_cast<double>(breakdown.allocated()));
}

TEST_F(ViewerDataTest, PeakIsTheReportsToTheByte) {
  TrainingOptions unlabelled;
  unlabelled.labels = false;
  TrainingOptions odd;
  odd.layers = 5;
  odd.steps = 4;
  odd.activation_bytes = (3 << 20) + 100;
  for (const TrainingOptions& options : {TrainingOptions{}, unlabelled, odd}) {
    const Both both = Build(options);
    ASSERT_EQ(both.report.devices_size(), 1);
    ExpectSameBlocks(both.data, 0, "peak", both.report.devices(0).at_peak());
    ExpectSameCurve(both.data, 0, "peak", both.report.devices(0).at_peak());
  }
}

TEST_F(ViewerDataTest, OutOfMemoryIsTheReportsToTheByte) {
  for (const int step : {0, 1}) {
    TrainingOptions options;
    options.layers = 4;
    options.steps = 3;
    options.fail_at_layer = 2;
    options.fail_at_step = step;
    const Both both = Build(options);
    ASSERT_TRUE(both.report.devices(0).has_at_refusal());
    ExpectSameBlocks(both.data, 0, "out_of_memory", both.report.devices(0).at_refusal());
    ExpectSameCurve(both.data, 0, "out_of_memory", both.report.devices(0).at_refusal());
  }
}

TEST_F(ViewerDataTest, LongTraceKeepsTheReportsInstantsAndEveryPeakOfTheCurve) {
  TrainingOptions options;
  options.layers = 6;
  options.steps = 6;
  const Both all = Build(options);
  const Both some = Build(options, {.blocks = 1, .detail = 0});
  EXPECT_TRUE(all.data.header()["complete"]);
  EXPECT_FALSE(some.data.header()["complete"]);
  EXPECT_LT(some.data.Column("block.bytes").size(), all.data.Column("block.bytes").size());
  ExpectSameBlocks(some.data, 0, "peak", some.report.devices(0).at_peak());
  EXPECT_EQ(some.data.Column("curve0.highest"), all.data.Column("curve0.highest"));
  for (const auto& keyframe : some.data.header()["keyframes"]) {
    EXPECT_EQ(some.data.Alive(0, keyframe).size(), all.data.Alive(0, keyframe).size());
  }
}

TEST_F(ViewerDataTest, LongTraceKeepsEveryBlockAroundTheReportsInstants) {
  TrainingOptions options;
  options.layers = 6;
  options.steps = 6;
  const Both all = Build(options);
  const Both some = Build(options, {.blocks = 1, .detail = 12});
  EXPECT_LT(some.data.Column("block.bytes").size(), all.data.Column("block.bytes").size());
  const nlohmann::json& detail = some.data.header()["detail"];
  ASSERT_FALSE(detail.empty());
  int64_t last = -1;
  for (const auto& stretch : detail) {
    const auto from = stretch[0].get<uint32_t>();
    const auto to = stretch[1].get<uint32_t>();
    EXPECT_GT(from, last) << "stretches are apart";
    last = to;
    for (uint32_t tick = from; tick <= to; ++tick) {
      EXPECT_EQ(some.data.Alive(0, tick).size(), all.data.Alive(0, tick).size()) << tick;
    }
  }
  const int64_t peak = some.data.Mark(0, "peak");
  EXPECT_TRUE(std::any_of(detail.begin(), detail.end(), [&](const auto& stretch) {
    return stretch[0].template get<int64_t>() <= peak - 12 && peak <= stretch[1].template get<int64_t>();
  }));
  EXPECT_TRUE(all.data.header()["detail"].empty());
  EXPECT_TRUE(Build(options, {.blocks = 1, .detail = 12, .served = true}).data.header()["detail"].empty());
}

TEST_F(ViewerDataTest, StackParentsComeFirstAndNameFrames) {
  const Both both = Build(TrainingOptions{});
  const std::vector<double> parent = both.data.Column("stack.parent");
  const std::vector<double> frame = both.data.Column("stack.frame");
  const std::vector<double> function = both.data.Column("frame.function");
  ASSERT_GT(parent.size(), 1U);
  for (size_t i = 1; i < parent.size(); ++i) {
    EXPECT_LT(parent[i], i);
    ASSERT_LT(frame[i], function.size());
  }
  for (const double stack : both.data.Column("block.stack")) ASSERT_LT(stack, parent.size());
}

TEST_F(ViewerDataTest, SegmentsHoldTheirBlocks) {
  const Both both = Build(TrainingOptions{});
  const Breakdown& peak = both.report.devices(0).at_peak();
  const auto tick = static_cast<double>(both.data.Mark(0, "peak"));
  const auto bytes = both.data.Column("segment.bytes");
  const auto caching = both.data.Column("segment.caching");
  const auto allocated = both.data.Column("segment.allocated");
  const auto freed = both.data.Column("segment.freed");
  double reserved = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (caching[i] == 1 && allocated[i] <= tick && tick < freed[i]) reserved += bytes[i];
  }
  EXPECT_EQ(reserved, static_cast<double>(peak.reserved()));
}

TEST_F(ViewerDataTest, DevicesAreKeptApart) {
  TraceBuilder builder;
  for (uint32_t device = 0; device < 2; ++device) {
    builder.Query(uint64_t{20} << 30, uint64_t{24} << 30, v1::MemoryQuery::REASON_CONTEXT, device);
    builder.Allocate({.address = TraceBuilder::kBaseAddress + (uint64_t{device} << 32),
                      .bytes = uint64_t{1024} << device,
                      .requested = 1000,
                      .device = device});
  }
  const Both both = Build(&builder);
  ASSERT_EQ(both.report.devices_size(), 2);
  for (uint32_t device = 0; device < 2; ++device) {
    ExpectSameBlocks(both.data, device, "peak", both.report.devices(static_cast<int>(device)).at_peak());
    ExpectSameCurve(both.data, device, "peak", both.report.devices(static_cast<int>(device)).at_peak());
  }
}

TEST_F(ViewerDataTest, CyclesAndMissingRowsInTablesAreSurvived) {
  TraceBuilder builder;
  v1::Packet packet;
  packet.mutable_stack()->set_id(1);
  packet.mutable_stack()->set_parent(2);
  builder.Add(packet, true);
  packet.mutable_stack()->set_id(2);
  packet.mutable_stack()->set_parent(1);
  builder.Add(packet, true);
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 512, .stack = 1});
  builder.Allocate({.address = TraceBuilder::kBaseAddress + 512, .bytes = 512, .stack = 999});
  const Both both = Build(&builder);
  EXPECT_EQ(both.data.Column("block.stack").size(), 2U);
  const std::vector<double> parent = both.data.Column("stack.parent");
  for (size_t i = 1; i < parent.size(); ++i) EXPECT_LT(parent[i], i);
}

TEST(CurveTest, KeepsEveryPeakInABoundedNumberOfBuckets) {
  Curve curve;
  constexpr Tick kTicks = 200'000;
  for (Tick tick = 0; tick < kTicks; ++tick) {
    CurvePoint point;
    point.tick = tick;
    point.allocated = tick == 123'457 ? 999'999 : tick % 100;
    curve.Add(point);
  }
  curve.AddLife(50, kNever, 2, 1000, 1024);
  curve.AddLife(123'457, 123'458, 1, 999'000, 999'040);  // alive at one event only, the peak
  curve.SumLives();
  Columns columns;
  curve.Write("c.", &columns);
  const DataFile data(columns.Finish({}));
  const std::vector<double> highest = data.Column("c.highest");
  EXPECT_LE(highest.size(), 2 * Curve::kBuckets);
  EXPECT_GT(highest.size(), Curve::kBuckets / 2);
  const auto peak = std::max_element(highest.begin(), highest.end());
  EXPECT_EQ(*peak, 999'999);
  const auto bucket = static_cast<size_t>(peak - highest.begin());
  EXPECT_EQ(data.Column("c.highest_tick")[bucket], 123'457);
  EXPECT_EQ(data.Column("c.band1")[bucket], 999'000);
  EXPECT_EQ(data.Column("c.band1")[bucket + 1], 0);
  EXPECT_EQ(data.Column("c.band2")[bucket], 1000);
  EXPECT_EQ(data.Column("c.band2").front(), 0);
  EXPECT_EQ(data.Column("c.band2").back(), 1000);
  EXPECT_EQ(data.Column("c.band" + std::to_string(kBands - 1))[bucket], 64);
  EXPECT_THAT(curve.LocalPeaks(10), ::testing::Contains(Tick{123'457}));
}

}  // namespace
}  // namespace vramtrace::viewer_data
