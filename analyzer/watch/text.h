#pragma once
// What a user sees: one line a second, the block of a terminal, and the diagnosis at the end.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzer/watch/evidence.h"
#include "analyzer/watch/progress.h"
#include "analyzer/watch/symptoms.h"

namespace vramtrace::watch {

// The state of one moment.
struct Moment {
  double elapsed = 0;
  std::vector<CardSample> cards;
  const TraceFacts* facts = nullptr;
  Progress progress;
  std::string why_no_nvml;
};

// One line without an end.
[[nodiscard]] std::string Line(const Moment& moment, const Plan& plan);
// Several lines for a terminal of that many columns, each with its end.
[[nodiscard]] std::string Block(const Moment& moment, const Plan& plan, size_t columns);

struct Ended {
  Evidence evidence;
  std::vector<Decided> decided;
  std::vector<RuleOfThumb> rules;
  Progress progress;
  double elapsed = 0;
};
// The diagnosis: what was found, then with `explain` every row.
[[nodiscard]] std::string Diagnosis(const Ended& ended, const Plan& plan, bool explain);
[[nodiscard]] nlohmann::ordered_json Json(const Ended& ended, const Plan& plan);

// "The machine still bills 1.98 CNY an hour until it is stopped."
[[nodiscard]] std::string BillingLine(const Plan& plan);

}  // namespace vramtrace::watch
