// D03, D02, D04: what grows from step to step, and what only seems to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzer/diagnose/finding.h"

namespace vramtrace::diagnose {
namespace {

constexpr size_t kWarmUp = 2;  // steps whose state and caches are still coming

// The rows of whole steps after the warm-up.
std::vector<double> Column(const Evidence& evidence, uint64_t StepRow::*field) {
  std::vector<double> values;
  for (size_t i = kWarmUp; i < evidence.history.completed; ++i) {
    values.push_back(static_cast<double>(evidence.history.steps[i].*field));
  }
  return values;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool BelongsToTheModel(MemoryClass kind) {
  return kind == MemoryClass::kWeight || kind == MemoryClass::kBuffer || kind == MemoryClass::kGradient ||
         kind == MemoryClass::kOptimizerState || kind == MemoryClass::kWorkspace;
}

// Blocks of earlier steps that one place made.
struct Retained {
  uint64_t bytes = 0;
  std::set<uint64_t> births;
  std::vector<size_t> blocks;
  std::string function;
};

std::map<std::string, Retained> RetainedBySite(const Evidence& evidence) {
  std::map<std::string, Retained> sites;
  for (const LiveRow& row : evidence.live) {
    if (row.step + 1 > evidence.at.step || row.phase == Phase::kLoad || BelongsToTheModel(row.kind)) continue;
    Retained& site = sites[row.site];
    site.bytes += row.bytes;
    site.births.insert(row.step);
    site.blocks.push_back(row.index);
  }
  return sites;
}

std::string RemedyFor(const Retained& site, const Evidence& evidence) {
  uint64_t activations = 0;
  for (const LiveRow& row : evidence.live) {
    const bool held = std::binary_search(site.blocks.begin(), site.blocks.end(), row.index);
    if (held && row.allocation->verdict.memory_class == MemoryClass::kActivation) activations += row.bytes;
  }
  return activations * 2 > site.bytes
             ? "keep numbers, not tensors with their graph: loss.item() or .detach()"
             : "bound or empty what holds them; .detach().cpu() for what must be kept";
}

}  // namespace

Finding Leak(const Evidence& evidence) {
  Finding finding;
  const std::vector<double> low = Column(evidence, &StepRow::low);
  constexpr size_t kFewest = 3;
  if (low.size() < kFewest) return finding;
  const Line line = FitLine(low);
  const double grown = line.slope * static_cast<double>(low.size() - 1);
  constexpr double kNotable = 0.02;  // of what is allocated
  const bool rises = line.slope > 0 && grown > kNotable * static_cast<double>(evidence.allocated);
  std::map<std::string, Retained> sites = RetainedBySite(evidence);
  uint64_t retained = 0;
  uint64_t most = 0;
  const std::string* name = nullptr;
  for (auto& [site, held] : sites) {
    std::sort(held.blocks.begin(), held.blocks.end());
    if (held.births.size() < kFewest) continue;
    retained += held.bytes;
    if (held.bytes < most) continue;
    most = held.bytes;
    name = &site;
  }
  finding.numbers = {
      {"least bytes",
       fmt::format("{} {} a step over {} steps, R squared {:.2f}", line.slope < 0 ? "fall" : "rise",
                   Size(static_cast<uint64_t>(std::abs(line.slope))), low.size(), line.fit)}};
  if (!rises || name == nullptr) {
    if (rises) finding.state = State::kTooLittle;
    return finding;
  }
  const Retained& held = sites[*name];
  const double per_step = static_cast<double>(held.bytes) / static_cast<double>(held.births.size());
  const double all_per_step = static_cast<double>(retained) / static_cast<double>(held.births.size());
  finding.numbers.emplace_back("retained",
                               fmt::format("{} of {} earlier steps; {} of them from {}", Size(retained),
                                           held.births.size(), Size(held.bytes), *name));
  constexpr double kStraight = 0.95;
  constexpr double kHalf = 0.5;
  constexpr size_t kMany = 20;
  constexpr size_t kSome = 5;
  const bool explained = all_per_step >= kHalf * line.slope;
  finding.state = evidence.history.completed >= kSome && explained ? State::kFound : State::kTooLittle;
  finding.confidence =
      evidence.history.completed >= kMany && line.fit >= kStraight ? Confidence::kHigh : Confidence::kMedium;
  if (evidence.history.completed < kMany)
    finding.missing.push_back(fmt::format("{} steps; 20 make it sure", evidence.history.completed));
  if (line.fit < kStraight) finding.missing.emplace_back("the least bytes do not lie on one line");
  for (const auto& [site, one] : sites) {
    if (one.births.size() >= kFewest)
      finding.blocks.insert(finding.blocks.end(), one.blocks.begin(), one.blocks.end());
  }
  std::string until;
  const uint64_t peak = evidence.used;
  if (!evidence.refused && evidence.total > peak) {
    until = fmt::format(" At this rate the card is full after {:.0f} more steps.",
                        static_cast<double>(evidence.total - peak) / line.slope);
  }
  finding.sentence = fmt::format("Tensors of earlier steps stay alive: {} a step, {} of it made at {}.{}",
                                 Size(static_cast<uint64_t>(line.slope)),
                                 Size(static_cast<uint64_t>(per_step)), *name, until);
  finding.remedies.push_back({RemedyFor(held, evidence), retained, Forecast::kNone});
  return finding;
}

Finding PlateauGrowth(const Evidence& evidence) {
  Finding finding;
  const std::vector<double> low = Column(evidence, &StepRow::low);
  constexpr size_t kSome = 10;
  constexpr size_t kMany = 50;
  if (low.size() + kWarmUp < kSome) return finding;
  size_t jumps = 0;
  size_t at_records = 0;
  uint64_t highest = 0;
  uint64_t record = 0;
  const std::vector<StepRow>& steps = evidence.history.steps;
  for (size_t i = 0; i < evidence.history.completed; ++i) {
    const bool jumped = steps[i].reserved > highest;
    const bool sets_record = steps[i].peak > record;
    if (i >= kWarmUp && jumped) {
      ++jumps;
      at_records += sets_record ? 1 : 0;
    }
    highest = std::max(highest, steps[i].reserved);
    record = std::max(record, steps[i].peak);
  }
  const uint64_t first = std::max(steps[0].reserved, steps[1].reserved);
  const Line line = FitLine(low);
  constexpr double kFlat = 0.001;  // of allocated bytes a hundred steps
  const bool flat = std::abs(line.slope) * 100 < kFlat * static_cast<double>(evidence.allocated);
  finding.numbers = {
      {"reserved", fmt::format("{} after two steps, {} after {}", Size(first), Size(highest),
                               evidence.history.completed)},
      {"jumps", fmt::format("{}, {} of them at a record of the step's peak", jumps, at_records)}};
  constexpr double kGrown = 1.1;
  constexpr double kShare = 0.8;
  const bool grew = static_cast<double>(highest) >= kGrown * static_cast<double>(first);
  const bool records = static_cast<double>(at_records) >= kShare * static_cast<double>(jumps);
  if (!flat || !grew || !records || jumps < 2) return finding;
  // One isolated spike is D04's.
  finding.state = State::kFound;
  finding.confidence = evidence.history.completed >= kMany ? Confidence::kHigh : Confidence::kMedium;
  if (finding.confidence != Confidence::kHigh)
    finding.missing.push_back(fmt::format("{} steps; 50 make it sure", evidence.history.completed));
  finding.sentence = fmt::format(
      "Not a leak: reserved memory rose from {} to {} because larger batches came, and what is left after "
      "each step "
      "stays the same. The largest batch so far needs {} of allocated bytes.",
      Size(first), Size(highest), Size(record));
  finding.remedies.push_back(
      {"nothing to mend; size the card for the largest batch of the data set", 0, Forecast::kNone});
  return finding;
}

namespace {

// Bytes of activations by place at a step's peak.
std::map<std::string, double> ActivationsBySite(const Evidence& evidence, const timeline::Instant& at) {
  std::map<std::string, double> sites;
  const uint64_t until = evidence.refused ? evidence.scan->refusals.back().instant.sequence : UINT64_MAX;
  const auto snapshots = timeline::TakeSnapshots(evidence.source.file, evidence.source.tables,
                                                 evidence.source.stacks, {{evidence.device, at, until}});
  const attribution::Breakdown breakdown = attribution::Explain(
      *evidence.source.tables, *evidence.source.stacks, *evidence.source.scan, snapshots.front(), false);
  for (const attribution::Allocation& allocation : breakdown.allocations) {
    const timeline::Block& block = snapshots.front().blocks[allocation.block].block;
    if (BelongsToTheModel(allocation.verdict.memory_class) || block.step != at.step) continue;
    // One stack is one place; sizes of one place at two lengths are compared.
    sites[fmt::format("{}", trace::Raw(block.stack))] += static_cast<double>(block.TensorBytes());
  }
  return sites;
}

struct Scale {
  double factor = 0;  // of the places' bytes, by bytes
  double share = 0;   // of the bytes at places that scale by it, or by its square
};

Scale CompareSites(const std::map<std::string, double>& typical, const std::map<std::string, double>& large) {
  Scale scale;
  std::vector<std::pair<double, double>> ratios;  // ratio, bytes
  double all = 0;
  for (const auto& [site, bytes] : large) {
    const auto other = typical.find(site);
    if (other == typical.end() || other->second < 4096) continue;
    ratios.emplace_back(bytes / other->second, bytes);
    all += bytes;
  }
  constexpr double kAlike = 0.05;
  for (const auto& [factor, unused] : ratios) {
    double fitting = 0;
    for (const auto& [ratio, bytes] : ratios) {
      const bool once = std::abs(ratio / factor - 1) < kAlike;
      const bool squared = std::abs(ratio / (factor * factor) - 1) < kAlike;
      if (once || squared) fitting += bytes;
    }
    if (all > 0 && fitting / all > scale.share) scale = {factor, fitting / all};
  }
  return scale;
}

}  // namespace

Finding LongSample(const Evidence& evidence) {
  Finding finding;
  const std::vector<StepRow>& steps = evidence.history.steps;
  if (steps.size() < 4) return finding;
  std::vector<double> peaks;
  for (size_t i = 1; i < evidence.history.completed; ++i) peaks.push_back(static_cast<double>(steps[i].peak));
  if (peaks.size() < 3) return finding;
  const double median = Median(peaks);
  const double here =
      static_cast<double>(evidence.allocated + (evidence.refused ? evidence.refusal->requested : 0));
  constexpr double kSpike = 1.3;
  if (here < kSpike * median || evidence.at.step == 0) return finding;
  size_t large = 0;
  constexpr double kAbove = 1.15;
  for (const double peak : peaks) large += peak > kAbove * median ? 1 : 0;
  const Line low = FitLine(Column(evidence, &StepRow::low));
  const bool flat = low.slope * static_cast<double>(peaks.size()) < 0.02 * here;
  finding.numbers = {
      {"step peaks",
       fmt::format("median {}, step {} {}{}", Size(static_cast<uint64_t>(median)), evidence.at.step,
                   evidence.refused ? "at least " : "", Size(static_cast<uint64_t>(here)))},
      {"how many", fmt::format("{} of {} steps above 1.15 times the median", large, peaks.size())}};
  const size_t most = std::max<size_t>(2, peaks.size() / 20);
  if (!flat || large > most) return finding;
  // A step like the median one.
  size_t typical = 1;
  for (size_t i = 1; i < evidence.history.completed; ++i) {
    const double off = std::abs(static_cast<double>(steps[i].peak) - median);
    if (off < std::abs(static_cast<double>(steps[typical].peak) - median)) typical = i;
  }
  std::map<std::string, double> at_large;
  for (const LiveRow& row : evidence.live) {
    if (BelongsToTheModel(row.kind) || row.step != evidence.at.step) continue;
    at_large[fmt::format("{}", trace::Raw(row.live->block.stack))] += static_cast<double>(row.bytes);
    Claim(&finding, row);
  }
  const Scale scale = CompareSites(ActivationsBySite(evidence, steps[typical].peak_at), at_large);
  finding.numbers.emplace_back(
      "scale", fmt::format("{:.2f} times the blocks of step {}, at {:.0f} % of the bytes", scale.factor,
                           typical, 100 * scale.share));
  constexpr double kConsistent = 0.8;
  if (scale.factor < 1.1 || scale.share < 0.5) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  const bool shape_known = evidence.input_step == evidence.at.step && !evidence.inputs.empty();
  finding.confidence = scale.share >= kConsistent && shape_known ? Confidence::kHigh : Confidence::kMedium;
  if (!shape_known) finding.missing.emplace_back("the input's shape in that step was not kept");
  std::string shape;
  if (shape_known) shape = fmt::format(" (input [{}])", fmt::join(evidence.inputs.front(), ", "));
  finding.sentence = fmt::format(
      "Step {}{} is {:.1f} times as large as the typical step: one long sample, not a leak. Everything else "
      "would do "
      "with {} of allocated bytes.",
      evidence.at.step, shape, scale.factor, Size(static_cast<uint64_t>(median)));
  const auto saved = static_cast<uint64_t>(here - median);
  finding.remedies.push_back(
      {"cap or bucket the length (truncate at a high percentile), or pack samples", saved, Forecast::kNone});
  finding.remedies.push_back(
      {"run the longest batch first, so that it fails in the first minute", 0, Forecast::kNone});
  return finding;
}

Finding Fragmentation(const Evidence& evidence) {
  Finding finding;
  const uint64_t gap =
      evidence.snapshot.reserved > evidence.allocated ? evidence.snapshot.reserved - evidence.allocated : 0;
  const attribution::FreeSpace& space = evidence.breakdown.free_space;
  const uint64_t whole = space.small.whole_segments + space.large.whole_segments;
  const uint64_t pinned = gap > whole ? gap - whole : 0;
  finding.numbers = {
      {"cached free",
       fmt::format("{} in {} pieces, the largest {}; {} of it beside live blocks", Size(gap),
                   space.large.holes + space.small.holes, Size(space.large.largest), Size(pinned))}};
  uint64_t flushed = 0;
  for (size_t i = kWarmUp; i < evidence.history.steps.size(); ++i)
    flushed += evidence.history.steps[i].segments_given_back;
  const bool refused = evidence.refusal && evidence.refusal->reason == attribution::Reason::kFragmentation;
  if (refused) {
    finding.state = State::kFound;
    finding.confidence = Confidence::kHigh;
    finding.sentence = fmt::format(
        "{} was asked for while {} was cached free, in pieces of at most {}: the bytes are there and cannot "
        "be used.",
        Size(evidence.refusal->requested), Size(evidence.refusal->cached_free),
        Size(evidence.refusal->largest_hole));
  } else {
    constexpr uint64_t kLeast = uint64_t{1} << 30;
    const bool wide = pinned >= std::max(kLeast, evidence.total / 10);
    if (evidence.refusal) {
      finding.numbers.emplace_back(
          "shortage",
          fmt::format("the request of {} exceeds what is free and cached together, or fits a hole",
                      Size(evidence.refusal->requested)));
    }
    if (!wide || evidence.refused) {
      if (wide) finding.state = State::kTooLittle;
      return finding;
    }
    finding.state = flushed > 0 ? State::kFound : State::kTooLittle;
    finding.confidence = Confidence::kMedium;
    finding.missing.emplace_back("no request was refused");
    finding.sentence = fmt::format(
        "{} is cached in segments that live blocks pin, and the cache was given back {} times after the "
        "first steps.",
        Size(pinned), flushed);
  }
  finding.parts = {{"cached_free", evidence.Term("cached_free")}};
  if (!evidence.expandable_segments) {
    finding.remedies.push_back(
        {"PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.9)", gap,
         Forecast::kExpandable});
    if (!evidence.settings_split) {
      finding.remedies.push_back(
          {"max_split_size_mb in the same variable, so that large blocks stay whole", gap, Forecast::kNone});
    }
  }
  finding.remedies.push_back(
      {"allocate what lives long before the first large block, or pad shapes to a few sizes", gap,
       Forecast::kNone});
  return finding;
}

}  // namespace vramtrace::diagnose
