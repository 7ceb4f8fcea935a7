#pragma once
// What a dry run says at its end, from what the simulated device, the trace and the wrapper know. Times of a
// dry run mean nothing and are not among it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/launch/simulator_report.h"
#include "analyzer/cli/launch/supervise.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {

// What the trace of the fullest process says.
struct TraceFacts {
  uint64_t steps = 0;  // whole optimizer steps
  uint64_t peak_allocated = 0;
  uint64_t peak_reserved = 0;
  bool convolutions = false;  // cuDNN chose plans, which no dry run can ask it for
};

struct DryRunFacts {
  std::string gpu_name;
  std::string total_basis;    // "measured", "given with --total"
  std::string context_basis;  // "general knowledge"
  std::vector<launch::SimulatedProcess> processes;
  int exit_code = 0;  // the program's, as a shell shows it
  std::optional<launch::Stop> stop;
  std::optional<uint64_t> budget_bytes;
  std::optional<TraceFacts> trace;
};

// One device over the processes that used it.
struct DeviceUse {
  launch::SimulatedDevice worst;  // of the process with the highest peak; the largest refusal is over all
  uint64_t together = 0;          // bytes, sum of the processes' peaks
  uint64_t refused = 0;           // allocations
  int processes = 0;
};

struct DryRunVerdict {
  enum class Fit { kFits, kTooClose, kDoesNotFit, kUnknown };
  Fit fit = Fit::kUnknown;
  bool used_device = false;
  bool over_budget = false;
  int exit_code = 0;                 // of the wrapper
  std::map<int, DeviceUse> devices;  // by index; those that were used
  std::vector<std::string> lines;
};

// What a real card may need for it, by the band of a forecast of the run as it was recorded
// (forecast/bands.h): a share of what is not context, and what the context may be larger by. Where no trace
// tells whether it ran convolutions, the wider band holds.
[[nodiscard]] uint64_t HighEstimate(const DryRunFacts& facts, const launch::SimulatedDevice& device);

[[nodiscard]] DryRunVerdict Judge(const DryRunFacts& facts);

// Why the wrapper ended the run, and what to do about it.
[[nodiscard]] std::vector<std::string> StopLines(const launch::Stop& stop);

}  // namespace vramtrace::cli
