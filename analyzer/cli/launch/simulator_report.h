#pragma once
// What the simulated device says after a run: the peaks of every process that used it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vramtrace::launch {

struct SimulatedDevice {
  int index = 0;
  uint64_t total_bytes = 0;
  uint64_t context_bytes = 0;
  uint64_t peak_used_bytes = 0;
  uint64_t refused_allocations = 0;  // each an out of memory that the program saw
  uint64_t largest_refused_bytes = 0;
};

// Values that no kernel computed and that the program read.
struct InventedRead {
  std::string effect;  // "shape", "branch" or "value": what can hang on it
  std::string where;   // the program's line
  std::string what;
  uint64_t reads = 0;
};

struct SimulatedProcess {
  int process = 0;
  std::vector<SimulatedDevice> devices;  // those that were used
  std::vector<InventedRead> invented;
};

// The name to put into VRAMTRACE_SIM_REPORT so that ReadSimulatorReports finds what a run left in `folder`.
[[nodiscard]] std::string SimulatorReportPattern(const std::filesystem::path& folder);

// Every report in `folder`: the one written at a process's end, or where it was killed the live one.
[[nodiscard]] std::vector<SimulatedProcess> ReadSimulatorReports(const std::filesystem::path& folder);

}  // namespace vramtrace::launch
