#pragma once
// Proof of a forecast: the program runs again on the simulated device with the change, and what it took is
// set beside what was predicted.

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "analyzer/fit/runner.h"
#include "analyzer/forecast/planner.h"

namespace vramtrace::fit {

struct VerifyRequest {
  // As the user gave it after `--`, or as recorded. With a batch that was not recorded it needs "{batch}";
  // a recorded command gets it from WithPlaceholder.
  std::vector<std::string> command;
  bool command_was_recorded = false;
  uint64_t recorded_batch = 0;
  const catalogue::Gpu* gpu = nullptr;
  // The forecast to be proved. Borrowed.
  const forecast::Prediction* prediction = nullptr;
};

struct Verification {
  RunResult run;
  Bytes predicted_allocated = 0;
  Bytes predicted_reserved = 0;
  bool allocated_in_band = false;
  bool reserved_in_band = false;
  std::string words;  // forecast and result side by side, some lines; or why there is no result
  [[nodiscard]] bool ok() const { return run.end == End::kCompleted; }
};

// What VRAMTRACE_APPLY must hold for the techniques to be applied from outside
// (preload/python/techniques): "checkpointing;lora:rank=8"; empty for none.
[[nodiscard]] std::string ApplyText(std::span<const forecast::Chosen> techniques);

// The run is made without a limit, so that it ends even where the forecast is wrong. The string says why it
// cannot be made: no placeholder, nothing to run.
[[nodiscard]] std::variant<Verification, std::string> Verify(const VerifyRequest& request, Runner* runner);

}  // namespace vramtrace::fit
