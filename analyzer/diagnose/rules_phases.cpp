// D05, D06, D07, D15: the phase that holds the peak.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/diagnose/finding.h"

namespace vramtrace::diagnose {
namespace {

constexpr double kShare = 0.1;

uint64_t MostElsewhere(const Evidence& evidence, Phase left_out) {
  uint64_t most = 0;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    if (static_cast<Phase>(phase) == left_out) continue;
    most = std::max(most, evidence.history.Most(static_cast<Phase>(phase), 0, evidence.history.steps.size()));
  }
  return most;
}

uint64_t AllocatedThen(const Evidence& evidence) {
  return evidence.allocated +
         (evidence.refused && evidence.refusal->caching_allocator ? evidence.refusal->requested : 0);
}

// Equal blocks of one place: how many, and of how many bytes.
struct Staircase {
  size_t blocks = 0;
  uint64_t bytes = 0;  // of one
  std::string site;
};

Staircase LargestStaircase(const Evidence& evidence, const Finding& finding) {
  std::map<std::pair<std::string, uint64_t>, size_t> counts;
  for (const LiveRow& row : evidence.live) {
    const bool held =
        std::find(finding.blocks.begin(), finding.blocks.end(), row.index) != finding.blocks.end();
    if (held) ++counts[{row.site, row.bytes}];
  }
  Staircase best;
  for (const auto& [key, count] : counts) {
    if (count * key.second > best.blocks * best.bytes) best = {count, key.second, key.first};
  }
  return best;
}

bool IsLoaded(const Evidence& evidence, const LiveRow& row) {
  const model::StackId stack = row.live->block.stack;
  return (*evidence.source.stacks)[stack].hint == model::FrameHint::kLoad &&
         HasFrame(evidence, stack, "serialization.py");
}

}  // namespace

Finding EvaluationPeak(const Evidence& evidence) {
  Finding finding;
  uint64_t bytes = evidence.refused ? evidence.refusal->requested : 0;
  const bool inside = evidence.at.phase == Phase::kEvaluate ||
                      HasFrame(evidence, evidence.at.stack, "evaluate") ||
                      HasFrame(evidence, evidence.at.stack, "validate");
  if (!inside) bytes = 0;
  for (const LiveRow& row : evidence.live) {
    const bool made = row.phase == Phase::kEvaluate ||
                      HasFrame(evidence, row.live->block.stack, "evaluate") ||
                      HasFrame(evidence, row.live->block.stack, "validate");
    const bool model = row.kind == MemoryClass::kWeight || row.kind == MemoryClass::kOptimizerState;
    if (!made || model) continue;
    Claim(&finding, row);
    bytes += row.bytes;
  }
  if (bytes == 0) return finding;
  const uint64_t training = MostElsewhere(evidence, Phase::kEvaluate);
  finding.numbers = {{"evaluation", fmt::format("{} made by evaluation alive at the peak", Size(bytes))}};
  if (!Material(evidence, bytes, kShare)) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  const Staircase stairs = LargestStaircase(evidence, finding);
  constexpr size_t kSteps = 3;
  const bool staircase = stairs.blocks >= kSteps && 3 * stairs.blocks * stairs.bytes > bytes;
  if (!inside) {
    finding.sentence = fmt::format("{} that evaluation made is still alive in training.", Size(bytes));
    finding.remedies.push_back(
        {"drop evaluation's results before training goes on (del, and no reference kept)", bytes,
         Forecast::kNone});
  } else if (staircase) {
    finding.sentence = fmt::format(
        "The peak is in evaluation: results pile up on the device, {} blocks of {} so far, made at {}. Each "
        "further "
        "batch adds one.",
        stairs.blocks, Size(stairs.bytes), stairs.site);
    finding.remedies.push_back(
        {"move results to the host batch by batch (.cpu(); eval_accumulation_steps in transformers), or "
         "reduce them first (argmax)",
         stairs.blocks * stairs.bytes, Forecast::kNone});
  } else {
    finding.numbers.emplace_back(
        "training", fmt::format("peaked at {} of allocated bytes outside of it", Size(training)));
    finding.sentence = fmt::format("The peak is in evaluation: {} of allocated bytes, training needs {}.",
                                   Size(AllocatedThen(evidence)), Size(training));
    Remedy smaller{"a smaller evaluation batch (per_device_eval_batch_size in transformers)", bytes,
                   Forecast::kWithout};
    smaller.without = [](const forecast::Stream& stream, const forecast::Request& request) {
      return stream.SiteOf(request).phase == Phase::kEvaluate;
    };
    finding.remedies.push_back(std::move(smaller));
  }
  return finding;
}

Finding SavePeak(const Evidence& evidence) {
  Finding finding;
  const bool inside = evidence.at.phase == Phase::kSave ||
                      HasFrame(evidence, evidence.at.stack, "state_dict") ||
                      HasFrame(evidence, evidence.at.stack, "save_checkpoint") ||
                      HasFrame(evidence, evidence.at.stack, "save_pretrained");
  if (!inside || HasFrame(evidence, evidence.at.stack, "load_state_dict")) return finding;
  uint64_t bytes = evidence.refused ? evidence.refusal->requested : 0;
  for (const LiveRow& row : evidence.live) {
    const bool made = row.kind == MemoryClass::kSaveCopy ||
                      HasFrame(evidence, row.live->block.stack, "state_dict") ||
                      HasFrame(evidence, row.live->block.stack, "save_checkpoint");
    if (!made || row.kind == MemoryClass::kWeight || row.kind == MemoryClass::kOptimizerState ||
        row.kind == MemoryClass::kGradient)
      continue;
    Claim(&finding, row);
    bytes += row.bytes;
  }
  uint64_t weights = evidence.BytesOf(MemoryClass::kWeight);
  finding.numbers = {
      {"copies", fmt::format("{} made while saving; weights are {}", Size(bytes), Size(weights))}};
  if (!Material(evidence, bytes, kShare)) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  finding.sentence =
      fmt::format("The peak is in saving a checkpoint: {} of copies on the device.", Size(bytes));
  Remedy offload{
      "copy the state to the host tensor by tensor (offload_to_cpu=True for FSDP; .cpu() instead of "
      ".clone()), or save shards",
      bytes, Forecast::kWithout};
  offload.without = [](const forecast::Stream& stream, const forecast::Request& request) {
    return stream.SiteOf(request).phase == Phase::kSave || request.memory_class == MemoryClass::kSaveCopy;
  };
  finding.remedies.push_back(std::move(offload));
  finding.remedies.push_back(
      {"save once before the first step, so that it fails in the first minute", 0, Forecast::kNone});
  return finding;
}

Finding ResumePeak(const Evidence& evidence) {
  Finding finding;
  uint64_t bytes = 0;
  std::map<std::string, std::vector<const LiveRow*>> states;  // by what they are of
  for (const LiveRow& row : evidence.live) {
    const bool model = row.kind == MemoryClass::kWeight || row.kind == MemoryClass::kOptimizerState;
    const std::vector<std::string>& names = row.allocation->names;
    if (model && !names.empty()) {
      states[fmt::format("{} of {}", row.allocation->state_key, names.front())].push_back(&row);
    } else if (IsLoaded(evidence, row)) {
      Claim(&finding, row);
      bytes += row.bytes;
    }
  }
  // Where what was loaded has become the state itself, what was there before is the copy that stays.
  for (const auto& [what, rows] : states) {
    if (rows.size() < 2) continue;
    for (const LiveRow* row : rows) {
      const bool others_loaded = std::any_of(rows.begin(), rows.end(), [&](const LiveRow* other) {
        return other != row && IsLoaded(evidence, *other);
      });
      if (!others_loaded || IsLoaded(evidence, *row)) continue;
      Claim(&finding, *row);
      bytes += row->bytes;
    }
  }
  if (bytes == 0) return finding;
  finding.numbers = {
      {"twice", fmt::format("{} alive at the peak lie on the device both as loaded and as they were before",
                            Size(bytes))}};
  if (!Material(evidence, bytes, kShare)) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  finding.sentence = fmt::format(
      "Resuming takes {} more than a first run: the loaded checkpoint lies on the device beside the state "
      "that it replaced or was copied into.",
      Size(bytes));
  finding.remedies.push_back(
      {"torch.load(..., map_location=\"cpu\", mmap=True), and del of every dictionary of the old or the "
       "loaded "
       "state",
       bytes, Forecast::kNone});
  return finding;
}

Finding ShardedInitialisation(const Evidence& evidence) {
  Finding finding;
  const uint32_t world = evidence.source.tables->process.world_size();
  if (world < 2) return finding;
  const uint64_t before = evidence.history.peak_before_forward;
  uint64_t later = 0;
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kRecompute, Phase::kOptimizer,
                            Phase::kClip, Phase::kZeroGrad, Phase::kScript}) {
    later = std::max(later, evidence.history.Most(phase, 0, evidence.history.steps.size()));
  }
  finding.numbers = {{"before the first forward", fmt::format("{} of allocated bytes", Size(before))},
                     {"later", fmt::format("{} at most; {} processes", Size(later), world)}};
  const bool initial = evidence.at.phase == Phase::kLoad;
  if (!initial || before <= later + later / 10) return finding;
  for (const LiveRow& row : evidence.live) Claim(&finding, row);
  finding.state = State::kFound;
  finding.confidence = Confidence::kMedium;
  finding.missing.emplace_back("the traces of the other ranks");
  finding.sentence = fmt::format(
      "The peak of this rank is before the first forward: {} while the model is built, {} in training. The "
      "whole model "
      "is on the card before it is sharded over {} processes.",
      Size(before), Size(later), world);
  finding.remedies.push_back(
      {"build on the meta device or under zero.Init, and shard before weights are materialised "
       "(sync_module_states from rank 0)",
       before - later, Forecast::kNone});
  return finding;
}

}  // namespace vramtrace::diagnose
