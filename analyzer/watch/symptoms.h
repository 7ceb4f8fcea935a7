#pragma once
// The rules: evidence in, a finding a row out. Thresholds stand beside their reason.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/watch/evidence.h"

namespace vramtrace::watch {

enum class State : uint8_t {
  kAbsent,   // looked for and not there
  kNumbers,  // something of it, too little for a verdict
  kFound,
  kUnknown,  // the evidence is missing: `needs` says which
};
enum class Confidence : uint8_t { kMedium, kHigh };

[[nodiscard]] std::string_view StateText(State state);
[[nodiscard]] std::string_view ConfidenceText(Confidence confidence);

struct Finding {
  State state = State::kAbsent;
  Confidence confidence = Confidence::kMedium;
  std::string sentence;             // what was seen, with its numbers; also for kAbsent where that tells
  std::vector<std::string> advice;  // with its condition
  std::vector<std::string> needs;   // what would decide it, or raise the confidence
};

struct Symptom {
  std::string_view key;
  std::string_view title;
  std::string_view signature;
  std::string_view needs;
  std::string_view high;
  Finding (*decide)(const Evidence& evidence) = nullptr;
};

// Every row of symptoms.def.
[[nodiscard]] std::span<const Symptom> Symptoms();

struct Decided {
  const Symptom* symptom = nullptr;
  Finding finding;
};
[[nodiscard]] std::vector<Decided> DecideAll(const Evidence& evidence);

// Rules of thumb that people repeat, and when they hold: an answer each for the ones that this run's numbers
// call up. Conditions: shared knowledge on claims 9 to 11 (occupancy is not utilisation; the loader is one of
// seven; four cards, three times).
struct RuleOfThumb {
  std::string claim;
  std::string answer;
};
[[nodiscard]] std::vector<RuleOfThumb> RulesOfThumb(const Evidence& evidence);

// The functions of the rows.
Finding FullButIdle(const Evidence& evidence);
Finding WaitingForData(const Evidence& evidence);
Finding FewWorkers(const Evidence& evidence);
Finding SlowDisk(const Evidence& evidence);
Finding PageableCopies(const Evidence& evidence);
Finding SmallBatch(const Evidence& evidence);
Finding AllocatorThrashing(const Evidence& evidence);
Finding LaunchBound(const Evidence& evidence);
Finding Throttled(const Evidence& evidence);
Finding PageFaults(const Evidence& evidence);
Finding NotScaling(const Evidence& evidence);

// How the time of a step follows its batch: 0 not at all, 1 in proportion.
struct BatchGrowth {
  uint64_t small = 0;
  uint64_t large = 0;
  double share = 0;
};
[[nodiscard]] std::optional<BatchGrowth> GrowthWithBatch(const StepEvidence& steps);

// Helpers of rules.
[[nodiscard]] Finding Unknown(std::string needs);
[[nodiscard]] Finding Absent(std::string sentence = {});
// Seconds of a step in which the GPU did nothing; nothing without utilisation.
[[nodiscard]] std::optional<double> IdleSeconds(const Evidence& evidence);
[[nodiscard]] std::string Percent(double share);     // 0.25 -> "25 %"
[[nodiscard]] std::string Duration(double seconds);  // "340 ms", "2.1 s", "1 h 20 min"
[[nodiscard]] double FullShare(const CardEvidence& card);
[[nodiscard]] std::string NoUtilization(const Evidence& evidence);

}  // namespace vramtrace::watch
