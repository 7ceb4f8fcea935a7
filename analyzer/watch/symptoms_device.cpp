// The card: full and idle, its batch, its allocator, its launches, its clocks, and its neighbours.
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/units.h"
#include "analyzer/watch/symptoms.h"

namespace vramtrace::watch {
namespace {

std::string FewSteps(const Evidence& evidence) {
  return evidence.traced ? fmt::format("{} steps or more after the first {}", kLeastSteps, kWarmUpSteps)
                         : std::string("a recorded run: start it with `vramtrace watch -- CMD`");
}

struct Part {
  const char* name;
  double seconds;
};

}  // namespace

Finding FullButIdle(const Evidence& evidence) {
  const std::optional<double> utilization = evidence.Utilization();
  const CardEvidence* card = evidence.Fullest();
  if (!utilization || card == nullptr) return Unknown(NoUtilization(evidence));
  const std::string seen = fmt::format("{} of the memory used at most, the GPU {:.0f} % busy",
                                       Percent(FullShare(*card)), *utilization);
  if (FullShare(*card) < 0.9 || *utilization >= 50) return Absent(seen);
  Finding finding;
  finding.state = State::kNumbers;
  finding.sentence = seen;
  const std::optional<double> idle = IdleSeconds(evidence);
  if (!idle || *idle <= 0) {
    finding.needs.push_back(FewSteps(evidence));
    return finding;
  }
  const Part parts[] = {
      {"waiting for data", evidence.steps.data},
      {"the driver's allocation calls", evidence.steps.allocator},
      {"blocked by a device of the host", evidence.host.main_blocked * evidence.steps.mean}};
  finding.sentence += "; of the idle time:";
  const char* dominant = nullptr;
  double rest = 1;
  for (const Part& part : parts) {
    // Blocked time inside the loader is the loader's.
    const bool counted = part.name == parts[2].name && evidence.steps.data > 0;
    const double covers = counted ? 0 : std::min(1.0, part.seconds / *idle);
    rest -= covers;
    finding.sentence += fmt::format(" {} {},", part.name, Percent(covers));
    if (covers >= 0.6) dominant = part.name;
  }
  finding.sentence += fmt::format(" the rest {}", Percent(std::max(0.0, rest)));
  if (dominant != nullptr) {
    finding.state = State::kFound;
    finding.confidence = Confidence::kHigh;
    finding.sentence += fmt::format(". It is {}", dominant);
    finding.advice.emplace_back("the row of that class says what helps; a larger batch does not");
  } else {
    finding.needs.emplace_back("a profile of the host: no class covers 60 % of the idle time");
  }
  return finding;
}

Finding SmallBatch(const Evidence& evidence) {
  if (evidence.steps.counted < kLeastSteps) return Unknown(FewSteps(evidence));
  const std::optional<BatchGrowth> growth = GrowthWithBatch(evidence.steps);
  if (!growth) {
    return Unknown(
        "steps with two sizes of batch, 25 % apart: run 20 steps with twice the batch; one size cannot tell");
  }
  const std::string seen =
      fmt::format("from batch {} to {} the time of a step grows by {} of what the samples do", growth->small,
                  growth->large, Percent(std::max(0.0, growth->share)));
  if (growth->share > 0.3) {
    return Absent(seen + (growth->share >= 0.8 ? ": compute-bound, a larger batch buys nothing" : ""));
  }
  Finding finding;
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  finding.sentence = seen + ": samples are nearly free";
  const CardEvidence* card = evidence.Fullest();
  if (card != nullptr) {
    finding.advice.push_back(
        fmt::format("a larger batch, as far as the {} of headroom go (`vramtrace forecast` says how far); "
                    "mind the learning rate",
                    report::Size(card->total - std::min(card->total, card->used_most))));
  }
  return finding;
}

Finding AllocatorThrashing(const Evidence& evidence) {
  if (evidence.steps.counted < kLeastSteps) return Unknown(FewSteps(evidence));
  const double per_step =
      static_cast<double>(evidence.steps.retries) / static_cast<double>(evidence.steps.counted);
  const double share = evidence.steps.mean > 0 ? evidence.steps.allocator / evidence.steps.mean : 0;
  const std::string seen =
      fmt::format("{} retries in {} steps; the driver's allocation calls take {} of a step",
                  evidence.steps.retries, evidence.steps.counted, Percent(share));
  if (per_step < 0.1 && share < 0.05) return Absent(seen);
  Finding finding;
  finding.state = State::kFound;
  const CardEvidence* card = evidence.Fullest();
  const bool full = card != nullptr && FullShare(*card) >= 0.9;
  finding.confidence = per_step >= 0.1 && full ? Confidence::kHigh : Confidence::kMedium;
  finding.sentence = seen;
  if (card != nullptr)
    finding.sentence += fmt::format("; {} of the card was used at most", Percent(FullShare(*card)));
  finding.advice.emplace_back(
      "PYTORCH_ALLOC_CONF=expandable_segments:True where it is not set yet; no torch.cuda.empty_cache() in "
      "the loop");
  finding.advice.emplace_back(
      "a few MiB less a step, a smaller batch or shorter samples: `vramtrace analyze` says what fills it");
  return finding;
}

Finding LaunchBound(const Evidence& evidence) {
  if (evidence.steps.counted < kLeastSteps) return Unknown(FewSteps(evidence));
  const std::optional<double> utilization = evidence.Utilization();
  const double compute = std::max(0.0, evidence.steps.mean - evidence.steps.data);
  const double each = evidence.steps.blocks > 0 ? compute / evidence.steps.blocks : 0;
  const std::string seen = fmt::format(
      "{:.0f} tensors a step, one every {}, of {} each; the main thread computes {} of the time",
      evidence.steps.blocks, Duration(each), report::Size(static_cast<uint64_t>(evidence.steps.block_bytes)),
      Percent(evidence.host.main_busy));
  if (!utilization) {
    Finding finding = Unknown(NoUtilization(evidence));
    finding.sentence = seen;
    return finding;
  }
  // A kernel's launch takes 5 to 10 us of the host, an operation of PyTorch several of them [ours].
  constexpr double kShort = 200e-6;
  const bool short_ones = evidence.steps.blocks >= 50 && each < kShort;
  if (!short_ones || *utilization >= 80 || evidence.host.main_busy < 0.8) return Absent(seen);
  Finding finding;
  finding.state = State::kFound;
  finding.sentence = seen + fmt::format("; the GPU is {:.0f} % busy", *utilization);
  const CardEvidence* card = evidence.Fullest();
  if (card != nullptr) {
    const bool cool =
        card->watts_limit && !card->watts.empty() && card->watts.Value() < *card->watts_limit / 2;
    const bool unread = !card->bandwidth.empty() && card->bandwidth.Value() < 30;
    if (cool || unread) finding.confidence = Confidence::kHigh;
  }
  finding.advice.emplace_back(
      "torch.compile(model), mode=\"reduce-overhead\" where shapes are fixed; optimizers with fused=True");
  finding.advice.emplace_back(
      "a larger micro-batch, if the time of a step stays flat; no .item() or print of tensors in each step");
  return finding;
}

Finding Throttled(const Evidence& evidence) {
  Finding worst = Unknown(evidence.why_no_nvml.empty() ? "throttle reasons by NVML" : evidence.why_no_nvml);
  for (const CardEvidence& card : evidence.cards) {
    if (card.thermal.count() < kLeastSamples) continue;
    const double clock = card.clock_most && *card.clock_most > 0 && !card.clock.empty()
                             ? card.clock.Value() / *card.clock_most
                             : 1;
    const std::string clocks = fmt::format("{}: SM clock {} of its most", card.name, Percent(clock));
    Finding finding = Absent(clocks);
    if (card.thermal.Value() >= 0.2) {
      finding.state = State::kFound;
      finding.confidence = Confidence::kHigh;
      finding.sentence = fmt::format("{}, lowered by heat in {} of the samples, {:.0f} C at most", clocks,
                                     Percent(card.thermal.Value()), card.celsius.Most());
      finding.advice.emplace_back(
          "cooling: on a rented machine another one, or a report to the provider with this line");
    } else if (card.power.Value() >= 0.2 && clock < 0.85) {
      finding.state = State::kFound;
      finding.confidence = Confidence::kHigh;
      finding.sentence = fmt::format("{}, lowered by the power limit ({:.0f} W) in {} of the samples", clocks,
                                     card.watts_limit.value_or(0), Percent(card.power.Value()));
      finding.advice.emplace_back(
          "ask for the card's own limit: `nvidia-smi -q -d POWER` shows default and enforced");
    } else if (card.power.Value() >= 0.2) {
      finding.sentence +=
          fmt::format("; at the power limit in {} of the samples, which is normal at full load",
                      Percent(card.power.Value()));
    }
    if (worst.state != State::kFound) worst = finding;
  }
  return worst;
}

Finding PageFaults(const Evidence& evidence) {
  if (evidence.host_looks < kLeastSamples) return Unknown("a few seconds of fault counters in /proc");
  const std::string seen = fmt::format("{:.0f} major and {:.0f} minor faults a second",
                                       evidence.host.major_faults, evidence.host.minor_faults);
  if (evidence.host.major_faults >= 50) {
    Finding finding;
    finding.state = State::kFound;
    const bool blocked = evidence.host.main_blocked >= 0.3 || evidence.host.major_faults >= 200;
    finding.confidence = blocked ? Confidence::kHigh : Confidence::kMedium;
    finding.sentence = seen + fmt::format("; the main thread is blocked in {} of the looks",
                                          Percent(evidence.host.main_blocked));
    finding.advice.emplace_back(
        "host memory is short, or data are mapped from a disk: fewer workers, smaller caches, a machine with "
        "more memory; "
        "read mapped data once in order");
    return finding;
  }
  // A minor fault takes about half a microsecond of the kernel's time [ours]: below this, a tenth of a core.
  if (evidence.host.minor_faults >= 200000) {
    Finding finding;
    finding.state = State::kFound;
    finding.sentence = seen + ": large host buffers are made anew in every step";
    finding.advice.emplace_back(
        "keep and reuse host tensors; MALLOC_TRIM_THRESHOLD_ keeps freed memory in the process");
    return finding;
  }
  return Absent(seen);
}

Finding NotScaling(const Evidence& evidence) {
  const size_t cards = std::max<size_t>(evidence.cards.size(), evidence.processes);
  if (cards < 2) return Absent("one card");
  double least = 100;
  double most = 0;
  size_t seen = 0;
  for (const CardEvidence& card : evidence.cards) {
    if (card.utilization.count() < kLeastSamples) continue;
    ++seen;
    least = std::min(least, card.utilization.Value());
    most = std::max(most, card.utilization.Value());
  }
  Finding finding;
  if (seen >= 2 && least < 20 && most >= 60) {
    finding.state = State::kFound;
    finding.confidence = Confidence::kHigh;
    finding.sentence =
        fmt::format("{} cards, the busiest {:.0f} % and the idlest {:.0f} % busy", cards, most, least);
    finding.advice.emplace_back(
        evidence.processes < 2
            ? "one process drives them: DistributedDataParallel with a process a card (torchrun)"
            : "ranks have different work: look for one that loads, logs or saves for all");
    return finding;
  }
  if (!evidence.given.one_card_step || evidence.steps.counted < kLeastSteps) {
    finding = Unknown(
        "the time of a step on one card with the same batch a card: --one-card-step SECONDS; NVML counts "
        "waiting for other cards as busy");
    if (seen >= 2) finding.sentence = fmt::format("cards are {:.0f} to {:.0f} % busy", least, most);
    return finding;
  }
  const double efficiency = *evidence.given.one_card_step / evidence.steps.mean;
  const std::string measured =
      fmt::format("a step takes {} here and {} on one card: {} cards do the work of {:.1f}",
                  Duration(evidence.steps.mean), Duration(*evidence.given.one_card_step), cards,
                  efficiency * static_cast<double>(cards));
  if (efficiency >= 0.75) return Absent(measured);
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  finding.sentence = measured;
  finding.advice.emplace_back(
      "communication takes more than a third of the computing: accumulate (no_sync), larger micro-batches, "
      "gradient_as_bucket_view, LoRA, or cards with NVLink; `vramtrace doctor` measures the links");
  return finding;
}

}  // namespace vramtrace::watch
