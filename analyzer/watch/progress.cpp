#include "analyzer/watch/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/watch/evidence.h"
#include "analyzer/watch/symptoms.h"

namespace vramtrace::watch {
namespace {

// Speed changes with lengths and clocks: the newest steps say most about the next ones.
constexpr size_t kNewest = 200;

}  // namespace

Progress Estimate(const TraceFacts& facts, const Plan& plan, double elapsed) {
  Progress progress;
  const std::vector<StepTime>& steps = facts.steps();
  progress.steps = facts.completed();
  const size_t first =
      std::max(std::min(kWarmUpSteps, steps.size()), steps.size() - std::min(steps.size(), kNewest));
  double sum = 0;
  for (size_t i = first; i < steps.size(); ++i) sum += steps[i].seconds;
  if (first < steps.size()) progress.step_seconds = sum / static_cast<double>(steps.size() - first);

  // Batches that make a step: more than one with accumulation.
  const Loader& loader = facts.loader();
  uint64_t an_epoch = plan.steps_per_epoch;
  if (an_epoch == 0 && loader.length > 0 && loader.epochs > 0 && progress.steps > 0) {
    const uint64_t asked = (loader.epochs - 1) * loader.length + std::min(loader.batches, loader.length);
    an_epoch = std::max<uint64_t>(1, loader.length * progress.steps / std::max<uint64_t>(1, asked));
  }
  const uint64_t whole = plan.steps != 0 ? plan.steps : plan.epochs * an_epoch;
  if (progress.step_seconds > 0) {
    if (an_epoch != 0) {
      progress.epoch_seconds = static_cast<double>(an_epoch) * progress.step_seconds;
      double left = static_cast<double>(an_epoch - progress.steps % an_epoch) / static_cast<double>(an_epoch);
      // The loader knows where its epoch is; it is asked once more than it has batches.
      if (loader.length > 0) {
        left = 1 - static_cast<double>(std::min(loader.batches, loader.length)) /
                       static_cast<double>(loader.length);
      }
      progress.epoch_left_seconds = left * *progress.epoch_seconds;
    }
    if (whole != 0) {
      progress.left_seconds =
          static_cast<double>(whole - std::min(whole, progress.steps)) * progress.step_seconds;
    }
  }
  if (plan.price > 0) {
    progress.cost_so_far = elapsed / 3600 * plan.price;
    if (progress.left_seconds) progress.cost_to_come = *progress.left_seconds / 3600 * plan.price;
  }
  return progress;
}

std::string ProgressText(const Progress& progress, const Plan& plan) {
  std::vector<std::string> words;
  if (progress.epoch_seconds) {
    words.push_back(fmt::format("an epoch takes about {}, {} of it left", Duration(*progress.epoch_seconds),
                                Duration(*progress.epoch_left_seconds)));
  }
  if (progress.left_seconds)
    words.push_back(fmt::format("the run about {} more", Duration(*progress.left_seconds)));
  if (progress.cost_so_far) {
    words.push_back(fmt::format("{:.2f} {} so far", *progress.cost_so_far, plan.currency));
    if (progress.cost_to_come)
      words.push_back(fmt::format("{:.2f} {} to come", *progress.cost_to_come, plan.currency));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace vramtrace::watch
