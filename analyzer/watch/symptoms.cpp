#include "analyzer/watch/symptoms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/report/units.h"

namespace vramtrace::watch {
namespace {

constexpr auto kSymptoms = std::to_array<Symptom>({
#define VRAMTRACE_SYMPTOM(key, title, signature, needs, high, function) \
  {key, title, signature, needs, high, &(function)},
#include "analyzer/watch/symptoms.def"
#undef VRAMTRACE_SYMPTOM
});

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

std::span<const Symptom> Symptoms() { return kSymptoms; }

std::string_view StateText(State state) {
  constexpr std::string_view kTexts[] = {"absent", "numbers", "found", "unknown"};
  return kTexts[static_cast<size_t>(state)];
}

std::string_view ConfidenceText(Confidence confidence) {
  return confidence == Confidence::kHigh ? "high" : "medium";
}

std::vector<Decided> DecideAll(const Evidence& evidence) {
  std::vector<Decided> all;
  for (const Symptom& symptom : Symptoms()) all.push_back({&symptom, symptom.decide(evidence)});
  return all;
}

Finding Unknown(std::string needs) {
  Finding finding;
  finding.state = State::kUnknown;
  finding.needs.push_back(std::move(needs));
  return finding;
}

Finding Absent(std::string sentence) {
  Finding finding;
  finding.sentence = std::move(sentence);
  return finding;
}

std::optional<double> IdleSeconds(const Evidence& evidence) {
  const std::optional<double> utilization = evidence.Utilization();
  if (!utilization || evidence.steps.counted < kLeastSteps) return std::nullopt;
  return (1 - *utilization / 100) * evidence.steps.mean;
}

std::string Percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string Duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto minutes = static_cast<uint64_t>(seconds / 60);
  if (minutes < 60)
    return fmt::format("{} min {:.0f} s", minutes, std::floor(seconds - 60.0 * static_cast<double>(minutes)));
  if (minutes < 60 * 48) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{:.1f} days", seconds / 86400);
}

double FullShare(const CardEvidence& card) {
  return card.total == 0 ? 0 : static_cast<double>(card.used_most) / static_cast<double>(card.total);
}

std::string NoUtilization(const Evidence& evidence) {
  return evidence.why_no_nvml.empty()
             ? fmt::format("utilisation in {} samples while it trains", kLeastSamples)
             : "utilisation: " + evidence.why_no_nvml;
}

std::optional<BatchGrowth> GrowthWithBatch(const StepEvidence& steps) {
  // Steps that a scheduler or a checkpoint interrupted are few: three make a median.
  constexpr size_t kLeast = 3;
  std::vector<std::pair<uint64_t, double>> medians;
  for (const auto& [batch, seconds] : steps.by_batch) {
    if (seconds.size() >= kLeast) medians.emplace_back(batch, MedianOf(seconds));
  }
  if (medians.size() < 2 || medians.front().second <= 0) return std::nullopt;
  const auto& [small, fast] = medians.front();
  const auto& [large, slow] = medians.back();
  const double more = static_cast<double>(large) / static_cast<double>(small) - 1;
  if (more < 0.25) return std::nullopt;
  return BatchGrowth{small, large, (slow / fast - 1) / more};
}

std::vector<RuleOfThumb> RulesOfThumb(const Evidence& evidence) {
  std::vector<RuleOfThumb> rules;
  const CardEvidence* card = evidence.Fullest();
  const std::optional<BatchGrowth> growth = GrowthWithBatch(evidence.steps);
  const std::string by_batch =
      growth ? fmt::format("Here a step with batch {} took {} of what {} would in proportion", growth->large,
                           Percent(growth->share), growth->small)
             : std::string(
                   "This run had one size of batch, so it cannot tell: run 20 steps with twice the batch");
  if (card != nullptr && FullShare(*card) < 0.7) {
    rules.push_back(
        {"under 70 % of the memory: raise the batch",
         fmt::format("Occupancy is not utilisation: {} of {} is headroom, not lost speed. Raising the batch "
                     "pays while the time of a step stays flat; where it doubles with the batch, it buys "
                     "nothing and changes the optimisation. {}.",
                     report::Size(card->total - card->used_most), report::Size(card->total), by_batch)});
  }
  if (card != nullptr && FullShare(*card) >= 0.95) {
    rules.push_back(
        {"at 100 % of the memory: lower the batch, or accumulate",
         fmt::format("What is reserved is a cache: a full card without retries is healthy, and here {}. "
                     "Accumulation at the same micro-batch saves nothing and keeps gradients alive.",
                     evidence.steps.retries == 0
                         ? std::string("no request was retried")
                         : fmt::format("{} requests were retried", evidence.steps.retries))});
  }
  const std::optional<double> utilization = evidence.Utilization();
  const std::optional<double> idle = IdleSeconds(evidence);
  if (utilization && *utilization < 50) {
    const std::string covered = idle && *idle > 0 && evidence.loader.seen
                                    ? fmt::format("Here it covers {} of the idle time",
                                                  Percent(std::min(1.0, evidence.steps.data / *idle)))
                                    : std::string("Here no DataLoader's waiting was recorded");
    rules.push_back(
        {"low utilisation: the data loader is slow",
         "One of seven: also retries near the limit, synchronisation and logging, evaluation and saving, "
         "communication, launch-bound kernels, work on the CPU. It is the loader where its waiting covers "
         "60 % of the idle time. " +
             covered + "."});
  }
  if (evidence.cards.size() > 1 || evidence.processes > 1) {
    rules.push_back(
        {"four cards train three times as fast",
         "A fair target, not a law: it holds while communication that is not overlapped takes at most a "
         "third of the computing. Full fine-tuning over PCIe misses it, LoRA or NVLink reach it."});
  }
  return rules;
}

}  // namespace vramtrace::watch
