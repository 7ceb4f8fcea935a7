#include <gtest/gtest.h>

#include <cstring>

#include "analyzer/cli/launch/simulator_report.h"
#include "preload/simulator/core/live_report.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::Write;

std::string LiveBytes(uint32_t process, uint64_t peak) {
  simulator::LiveReport live;
  live.process_id = process;
  live.device_count = 3;
  live.devices[1] = {.total_bytes = 1000,
                     .context_bytes = 10,
                     .used_bytes = 20,
                     .peak_used_bytes = peak,
                     .refused_allocations = 2,
                     .largest_refused_bytes = 500};
  std::string bytes(sizeof(live), '\0');
  std::memcpy(bytes.data(), &live, sizeof(live));
  return bytes;
}

constexpr const char* kFinal =
    R"({"format": "vramtrace-simulator-report", "version": 1, "process_id": 7, "devices": [{"device": 0,
    "gpu": "t4", "total_bytes": 16000, "context_bytes": 300, "peak_used_bytes": 9000, "refused_allocations": 0,
    "largest_refused_bytes": 0}], "counts": {},
    "invented_values": [{"effect": "shape", "where": "train.py:3", "what": "nonzero", "reads": 2}, 5]})";

TEST(SimulatorReports, AreReadWhetherAProcessEndedOrWasKilled) {
  const Folder folder;
  Write(folder / "simulator-7.json", kFinal);
  Write(folder / "simulator-9.json.live", LiveBytes(9, 77));
  Write(folder / "simulator-9.json.tmp", kFinal);
  Write(folder / "wandb.json", kFinal);
  const auto processes = ReadSimulatorReports(folder.Path());
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].process, 7);
  ASSERT_EQ(processes[0].devices.size(), 1U);
  EXPECT_EQ(processes[0].devices[0].total_bytes, 16000U);
  EXPECT_EQ(processes[0].devices[0].context_bytes, 300U);
  EXPECT_EQ(processes[0].devices[0].peak_used_bytes, 9000U);
  ASSERT_EQ(processes[0].invented.size(), 1U);
  EXPECT_EQ(processes[0].invented[0].effect, "shape");
  EXPECT_EQ(processes[0].invented[0].where, "train.py:3");
  EXPECT_EQ(processes[0].invented[0].reads, 2U);
  ASSERT_EQ(processes[1].devices.size(), 1U) << "only the device that was used";
  EXPECT_EQ(processes[1].devices[0].index, 1);
  EXPECT_EQ(processes[1].devices[0].peak_used_bytes, 77U);
  EXPECT_EQ(processes[1].devices[0].refused_allocations, 2U);
  EXPECT_EQ(processes[1].devices[0].largest_refused_bytes, 500U);
}

TEST(SimulatorReports, SkipWhatIsNotOne) {
  const Folder folder;
  Write(folder / "simulator-1.json", "");
  Write(folder / "simulator-2.json", "{\"format\": 3}");
  Write(folder / "simulator-3.json", R"({"format": "vramtrace-simulator-report", "devices": 5})");
  Write(folder / "simulator-4.json",
        R"({"format": "vramtrace-simulator-report", "process_id": "x", "devices": [{"device": "y"}]})");
  Write(folder / "simulator-5.json.live", LiveBytes(5, 1).substr(0, 100));
  std::string other = LiveBytes(6, 1);
  other[8] = 2;  // a version to come
  Write(folder / "simulator-6.json.live", other);
  EXPECT_TRUE(ReadSimulatorReports(folder.Path()).empty());
  EXPECT_TRUE(ReadSimulatorReports(folder / "none").empty());
}

TEST(SimulatorReports, HaveANameAProcess) {
  EXPECT_EQ(SimulatorReportPattern("/tmp/x"), "/tmp/x/simulator-%p.json");
}

}  // namespace
}  // namespace vramtrace::launch
