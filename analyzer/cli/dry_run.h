#pragma once
// One dry run: the user's program under the recorder on the simulated device, kept from changing files.
// Nothing is printed here: `dry-run` lets the program speak, `fit` runs it quietly several times.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analyzer/cli/launch/environment.h"
#include "analyzer/cli/launch/shield.h"
#include "analyzer/cli/launch/simulator_report.h"
#include "analyzer/cli/launch/supervise.h"
#include "analyzer/cli/launch/traces.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {

struct DryRunRequest {
  std::vector<std::string> program;  // not empty
  const catalogue::Gpu* gpu = nullptr;
  int count = 1;
  std::optional<uint64_t> total;  // of the card, in place of the catalogue's
  std::optional<uint64_t> host_memory;
  std::string steps = "auto";  // auto, all or a number
  std::chrono::milliseconds time_out{};
  std::vector<std::filesystem::path> folders;  // to protect
  bool in_place = false;
  bool allow_layer = true;
  bool offline = false;
  std::vector<std::pair<std::string, std::string>> environment;  // beyond the caller's
  std::filesystem::path program_output;  // file for stdout and stderr; empty: the caller's own
};

// Why a run cannot be made; `exit_code` is what the command should end with.
struct DryRunProblem {
  std::string words;
  int exit_code = 0;
};

struct PreparedDryRun {
  launch::Shield shield;
  launch::Environment environment;
  bool dropped_visible_devices = false;  // CUDA_VISIBLE_DEVICES was set and is not passed on
};

// Finds the libraries, raises the shield and makes the environment. `output` has been prepared.
[[nodiscard]] std::variant<PreparedDryRun, DryRunProblem> PrepareDryRun(const DryRunRequest& request,
                                                                        const launch::TraceOutput& output);

// Runs it to its end.
[[nodiscard]] std::variant<launch::Ending, DryRunProblem> ExecuteDryRun(const DryRunRequest& request,
                                                                        const launch::TraceOutput& output,
                                                                        PreparedDryRun* prepared);

}  // namespace vramtrace::cli
