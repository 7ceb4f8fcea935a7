#include "analyzer/watch/evidence.h"

#include <algorithm>

namespace vramtrace::watch {
namespace {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

const CardEvidence* Evidence::Fullest() const {
  const CardEvidence* fullest = nullptr;
  for (const CardEvidence& card : cards) {
    if (card.total > 0 && (fullest == nullptr ||
                           static_cast<double>(card.used_most) * static_cast<double>(fullest->total) >
                               static_cast<double>(fullest->used_most) * static_cast<double>(card.total))) {
      fullest = &card;
    }
  }
  return fullest;
}

std::optional<double> Evidence::Utilization() const {
  Mean mean;
  for (const CardEvidence& card : cards) {
    if (card.utilization.count() >= kLeastSamples) mean.Add(card.utilization.Value());
  }
  return mean.empty() ? std::nullopt : std::optional<double>(mean.Value());
}

std::optional<double> Evidence::DataShare() const {
  if (!loader.seen || steps.counted < kLeastSteps || steps.mean <= 0) return std::nullopt;
  return std::min(1.0, steps.data / steps.mean);
}

StepEvidence SumUp(const std::vector<StepTime>& steps) {
  StepEvidence sum;
  sum.completed = steps.size();
  if (steps.size() <= kWarmUpSteps) return sum;
  std::vector<double> seconds;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  for (size_t i = kWarmUpSteps; i < steps.size(); ++i) {
    const StepTime& step = steps[i];
    seconds.push_back(step.seconds);
    sum.mean += step.seconds;
    sum.data += step.data;
    sum.allocator += step.allocator;
    sum.input_bytes += static_cast<double>(step.input_bytes);
    sum.retries += step.retries;
    blocks += step.blocks;
    bytes += step.block_bytes;
    if (step.batch != 0) sum.by_batch[step.batch].push_back(std::max(0.0, step.seconds - step.data));
  }
  sum.counted = seconds.size();
  const auto count = static_cast<double>(sum.counted);
  sum.median = MedianOf(seconds);
  sum.mean /= count;
  sum.data /= count;
  sum.allocator /= count;
  sum.input_bytes /= count;
  sum.blocks = static_cast<double>(blocks) / count;
  sum.block_bytes = blocks == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(blocks);
  return sum;
}

void Observer::AddCard(const CardSample& sample, bool steady) {
  CardEvidence& card = cards_[sample.index];
  if (!sample.name.empty()) card.name = sample.name;
  card.total = std::max(card.total, sample.total);
  card.used_most = std::max(card.used_most, sample.used);
  if (sample.watts_limit) card.watts_limit = *sample.watts_limit;
  if (sample.clock_most) card.clock_most = *sample.clock_most;
  if (!steady) return;
  if (sample.utilization) {
    card.seen = true;
    card.utilization.Add(sample.utilization->gpu);
    card.bandwidth.Add(sample.utilization->memory);
  }
  if (sample.celsius) card.celsius.Add(*sample.celsius);
  if (sample.watts) card.watts.Add(*sample.watts);
  if (sample.clock) card.clock.Add(*sample.clock);
  if (sample.throttle) {
    card.thermal.Add((*sample.throttle & nvml::kThermal) != 0 ? 1 : 0);
    card.power.Add((*sample.throttle & nvml::kPower) != 0 ? 1 : 0);
  }
}

void Observer::AddHost(const Rates& rates) {
  const double values[] = {rates.main_busy,    rates.main_blocked,    static_cast<double>(rates.workers),
                           rates.workers_busy, rates.workers_blocked, rates.major_faults,
                           rates.minor_faults, rates.read_bytes,      rates.host_busy};
  for (size_t i = 0; i < host_.size(); ++i) host_[i].Add(values[i]);
}

Evidence Observer::Finish(const TraceFacts& facts, const RemoteFiles& remote) const {
  Evidence evidence;
  for (const auto& [index, card] : cards_) evidence.cards.push_back(card);
  evidence.steps = SumUp(facts.steps());
  evidence.steps.completed = facts.completed();
  evidence.loader = facts.loader();
  evidence.host_looks = host_[0].count();
  evidence.host = {host_[0].Value(), host_[1].Value(), static_cast<int>(host_[2].Most()),
                   host_[3].Value(), host_[4].Value(), host_[5].Value(),
                   host_[6].Value(), host_[7].Value(), host_[8].Value()};
  evidence.cores = CoresAllowed();
  evidence.remote = remote;
  evidence.pinned_bytes = facts.pinned_bytes();
  evidence.processes = std::max(1U, facts.world_size());
  evidence.traced = facts.pid() != 0;
  return evidence;
}

}  // namespace vramtrace::watch
