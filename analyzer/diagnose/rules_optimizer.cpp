// D08 and D09: what the optimizer keeps, and what its step needs for a moment.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyzer/diagnose/finding.h"

namespace vramtrace::diagnose {
namespace {

constexpr double kShare = 0.15;

// Highest allocated bytes outside of the optimizer's step, in steps [from, to).
uint64_t OutsideOptimizer(const History& history, size_t from, size_t to) {
  uint64_t most = 0;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    const auto one = static_cast<Phase>(phase);
    if (one == Phase::kOptimizer || one == Phase::kClip) continue;
    most = std::max(most, history.Most(one, from, to));
  }
  return most;
}

uint64_t TemporariesAlive(const Evidence& evidence, Phase phase) {
  uint64_t bytes = evidence.refused ? evidence.refusal->requested : 0;
  for (const LiveRow& row : evidence.live) {
    if (row.phase == phase && row.kind == MemoryClass::kTemporary) bytes += row.bytes;
  }
  return bytes;
}

size_t TrainedTensors(const Evidence& evidence) {
  return static_cast<size_t>(std::count_if(evidence.parameters.begin(), evidence.parameters.end(),
                                           [](const Parameter& parameter) { return parameter.trained; }));
}

struct States {
  uint64_t bytes = 0;
  size_t blocks = 0;
  size_t tensors = 0;  // trained parameters that have some
  bool from_first_step = true;
};

States StatesAlive(const Evidence& evidence, Finding* finding) {
  constexpr uint64_t kScalar = 512;  // step counters
  States states;
  std::set<std::string> named;
  for (const LiveRow& row : evidence.live) {
    if (row.kind != MemoryClass::kOptimizerState) continue;
    Claim(finding, row);
    states.bytes += row.bytes;
    if (row.bytes >= kScalar) ++states.blocks;
    if (row.step > 0) states.from_first_step = false;
    for (const std::string& name : row.allocation->names) named.insert(name);
  }
  states.tensors = named.size();
  return states;
}

void AdviseSmallerState(const States& states, Finding* finding) {
  finding->remedies.push_back(
      {"an 8-bit optimizer (bitsandbytes AdamW8bit, torchao): a quarter of single-precision state",
       states.bytes * 3 / 4, Forecast::kTechnique, "adamw-8bit"});
  finding->remedies.push_back(
      {"an optimizer with one or no state a parameter (Adafactor, Lion, SGD); changes the training",
       states.bytes, Forecast::kTechnique, "adafactor"});
  finding->remedies.push_back({"train fewer parameters (LoRA): state follows the trained ones", states.bytes,
                               Forecast::kTechnique, "lora"});
}

}  // namespace

Finding StateAtFirstStep(const Evidence& evidence) {
  Finding finding;
  const States states = StatesAlive(evidence, &finding);
  const uint64_t before = OutsideOptimizer(evidence.history, 0, 1);
  // In the first optimizer step, and not for want of room for temporaries as large as the model (D09).
  const bool making = evidence.refused && evidence.at.phase == Phase::kOptimizer && evidence.at.step == 0 &&
                      ((*evidence.source.stacks)[evidence.at.stack].in_optimizer_init ||
                       2 * TemporariesAlive(evidence, Phase::kOptimizer) < evidence.TrainedBytes());
  finding.numbers = {
      {"state", fmt::format("{} in {} blocks, made in step 0", Size(states.bytes), states.blocks)},
      {"before it", fmt::format("step 0 peaked at {} of allocated bytes", Size(before))}};
  if (making) {
    finding.state = State::kFound;
    const uint64_t trained = evidence.TrainedBytes();
    finding.confidence = Confidence::kHigh;
    finding.sentence = fmt::format(
        "The run died in the first optimizer step, which makes its state: {} so far, for {} of trained "
        "parameters. "
        "Steps before it needed none of this.",
        Size(states.bytes), Size(trained));
    if (trained == 0)
      finding.missing.emplace_back("no gradient was labelled: the rest of the state is not known");
    AdviseSmallerState({states.bytes + evidence.refusal->requested, 0, 0, true}, &finding);
    return finding;
  }
  const bool later = evidence.at.step >= 1 && evidence.at.phase != Phase::kOptimizer;
  if (states.bytes == 0 || !states.from_first_step || !later) {
    finding.blocks.clear();
    return finding;
  }
  // The same phases in step 1 and in step 0: they differ by the state and nothing else.
  const uint64_t here = evidence.allocated + (evidence.refused ? evidence.refusal->requested : 0);
  const uint64_t next = evidence.at.step == 1 ? here : OutsideOptimizer(evidence.history, 1, 2);
  const uint64_t grown = next > before ? next - before : 0;
  finding.numbers.emplace_back("step 1", fmt::format("{} more than step 0", Size(grown)));
  constexpr double kLeast = 0.5;  // a step that died early has not reached its peak
  constexpr double kMost = 1.25;
  const auto state_bytes = static_cast<double>(states.bytes);
  const bool explains = static_cast<double>(grown) <= kMost * state_bytes &&
                        (evidence.refused || static_cast<double>(grown) >= kLeast * state_bytes);
  // Without the state the refused request would have gone through.
  const bool decisive = evidence.refused && evidence.at.step == 1 && states.bytes >= evidence.Missing();
  // What grew later is another matter.
  const bool flat = evidence.at.step == 1 || here <= next + states.bytes / 4;
  if (!explains || !flat || !(decisive || Material(evidence, states.bytes, kShare)) ||
      (evidence.refused && evidence.at.step > 1)) {
    finding.state = State::kTooLittle;
    finding.blocks.clear();
    return finding;
  }
  finding.state = State::kFound;
  const size_t tensors = TrainedTensors(evidence);
  const size_t each = tensors == 0 ? 0 : (states.blocks + tensors / 2) / tensors;
  const double off = tensors == 0 ? 1
                                  : std::abs(static_cast<double>(states.blocks) /
                                                 static_cast<double>(std::max<size_t>(1, each * tensors)) -
                                             1);
  constexpr double kCountOff = 0.02;
  finding.confidence = each > 0 && off <= kCountOff ? Confidence::kHigh : Confidence::kMedium;
  if (finding.confidence != Confidence::kHigh) {
    finding.missing.push_back(fmt::format("{} state blocks for {} trained tensors", states.blocks, tensors));
  }
  finding.sentence = fmt::format(
      "Steps from the second on need {} more than the first: the optimizer's state, {} a trained tensor, is "
      "born "
      "in the first step{}.",
      Size(states.bytes), each == 1 ? "one block" : fmt::format("{} blocks", each),
      evidence.refused ? "; the first forward passed without it" : "");
  AdviseSmallerState(states, &finding);
  return finding;
}

Finding OptimizerTemporaries(const Evidence& evidence) {
  Finding finding;
  const Phase phase = evidence.at.phase;
  if (phase != Phase::kOptimizer && phase != Phase::kClip) return finding;
  if (evidence.refused && (*evidence.source.stacks)[evidence.at.stack].in_optimizer_init) return finding;
  uint64_t bytes = evidence.refused ? evidence.refusal->requested : 0;
  bool multi_tensor = HasFrame(evidence, evidence.at.stack, "_multi_tensor") ||
                      HasFrame(evidence, evidence.at.stack, "_foreach");
  for (const LiveRow& row : evidence.live) {
    if (row.phase != phase || row.kind != MemoryClass::kTemporary) continue;
    Claim(&finding, row);
    bytes += row.bytes;
  }
  const uint64_t trained = evidence.TrainedBytes();
  const uint64_t next = OutsideOptimizer(evidence.history, 0, evidence.history.steps.size());
  const uint64_t here = evidence.allocated + (evidence.refused ? evidence.refusal->requested : 0);
  const uint64_t most_saved = here > next ? std::min(bytes, here - next) : 0;
  finding.numbers = {{"temporaries", fmt::format("{} alive at the peak; trained parameters are {}",
                                                 Size(bytes), Size(trained))},
                     {"next peak", fmt::format("{} in every other phase: at most {} can be saved", Size(next),
                                               Size(most_saved))}};
  if (trained == 0 || 2 * bytes < trained) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  const bool clip = phase == Phase::kClip;
  finding.sentence =
      fmt::format("The peak is inside {}: {} of temporary copies that live for this call alone.",
                  clip ? "gradient clipping" : "the optimizer's step", Size(bytes));
  const auto without = [](const forecast::Stream& stream, const forecast::Request& request) {
    return stream.SiteOf(request).phase == Phase::kClip && request.memory_class == MemoryClass::kTemporary;
  };
  if (clip) {
    finding.remedies.push_back(
        {"clip_grad_norm_(..., foreach=False)", most_saved, Forecast::kWithout, {}, without});
  } else {
    finding.remedies.push_back(
        {"fused=True in the optimizer's constructor", most_saved, Forecast::kTechnique, "fused"});
    if (multi_tensor) {
      finding.remedies.push_back({"foreach=False, slower: one parameter's copies at a time", most_saved,
                                  Forecast::kTechnique, "foreach-off"});
    }
  }
  return finding;
}

}  // namespace vramtrace::diagnose
