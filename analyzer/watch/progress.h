#pragma once
// How long it will take and what it costs: from the steps so far, never from a model of the card.

#include <optional>
#include <string>

#include "analyzer/watch/trace_facts.h"

namespace vramtrace::watch {

struct Plan {
  uint64_t steps_per_epoch = 0;  // 0: from the loader, where it tells its length
  uint64_t epochs = 0;           // 0: not said
  uint64_t steps = 0;            // of the whole run; wins over epochs
  double price = 0;              // of the machine, an hour; 0: not said
  std::string currency;
};

struct Progress {
  uint64_t steps = 0;
  double step_seconds = 0;  // mean of the newest ones
  std::optional<double> epoch_seconds;
  std::optional<double> left_seconds;  // of the run, where its length is known
  std::optional<double> epoch_left_seconds;
  std::optional<double> cost_so_far;
  std::optional<double> cost_to_come;
};

// `elapsed`: seconds since the program began, which are billed.
[[nodiscard]] Progress Estimate(const TraceFacts& facts, const Plan& plan, double elapsed);

// "epoch about 12 min, 4 min left; 1.20 CNY so far, 3.40 CNY to come"; empty where nothing is known.
[[nodiscard]] std::string ProgressText(const Progress& progress, const Plan& plan);

}  // namespace vramtrace::watch
