// D10: logits and the loss over them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/diagnose/finding.h"

namespace vramtrace::diagnose {
namespace {

constexpr double kShare = 0.15;            // of the peak: below it another remedy is larger
constexpr uint64_t kSmallestHead = 1'000;  // classes: a vocabulary, not the classes of a small classifier

struct Head {
  std::string owner;  // the module's path
  uint64_t rows = 0;
  uint64_t width = 0;
};

// The weight with the most rows, where no second module has as many: the layers' own weights repeat.
std::vector<Head> FindHeads(const Evidence& evidence) {
  std::map<uint64_t, std::vector<std::string>> by_rows;
  for (const Parameter& parameter : evidence.parameters) {
    if (parameter.shape.size() != 2 || parameter.shape[0] < static_cast<int64_t>(kSmallestHead)) continue;
    by_rows[static_cast<uint64_t>(parameter.shape[0])].push_back(parameter.owner);
  }
  constexpr size_t kMostNames = 3;  // embedding, head, and a name of the tied pair
  for (auto entry = by_rows.rbegin(); entry != by_rows.rend(); ++entry) {
    if (entry->second.size() > kMostNames) continue;
    std::vector<Head> heads;
    for (const Parameter& parameter : evidence.parameters) {
      const bool has =
          parameter.shape.size() == 2 && static_cast<uint64_t>(parameter.shape[0]) == entry->first;
      if (has) heads.push_back({parameter.owner, entry->first, static_cast<uint64_t>(parameter.shape[1])});
    }
    return heads;
  }
  return {};
}

bool IsLoss(const Evidence& evidence, const LiveRow& row) {
  for (const std::string_view word : {"LogSoftmax", "NllLoss", "CrossEntropy"}) {
    if (row.allocation->operator_name.find(word) != std::string::npos) return true;
  }
  for (const std::string_view frame :
       {"cross_entropy", "CrossEntropyLoss", "log_softmax", "nll_loss", "LMLoss"}) {
    if (HasFrame(evidence, row.live->block.stack, frame)) return true;
  }
  return false;
}

void Advise(const Evidence& evidence, uint64_t rows, const std::vector<uint64_t>& sizes, uint64_t bytes,
            Finding* finding) {
  Remedy fused;
  fused.change =
      "fused linear and cross-entropy over chunks of tokens (Liger Kernel, or a loop over chunks under "
      "checkpoint)";
  fused.saves_most = bytes;
  fused.forecast = Forecast::kWithout;
  fused.technique = "chunked-loss";
  fused.without = [sizes](const forecast::Stream& stream, const forecast::Request& request) {
    const Phase phase = stream.SiteOf(request).phase;
    const bool computes = phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kScript;
    return computes && std::find(sizes.begin(), sizes.end(), request.bytes) != sizes.end();
  };
  finding->remedies.push_back(std::move(fused));
  finding->remedies.push_back(
      {"logits only where a label counts (prompts and padding need none)", bytes, Forecast::kNone});
  AdviseHalfBatch(evidence, finding);
  (void)rows;
}

}  // namespace

Finding LogitsSpike(const Evidence& evidence) {
  Finding finding;
  // What evaluation piles up is another matter (D05).
  const bool evaluates =
      evidence.at.phase == Phase::kEvaluate || HasFrame(evidence, evidence.at.stack, "evaluate");
  if (evaluates || evidence.at.phase == Phase::kOptimizer) return finding;
  const std::vector<Head> heads = FindHeads(evidence);
  if (heads.empty()) return finding;
  const uint64_t rows = heads.front().rows;
  std::vector<uint64_t> sizes;
  for (const uint64_t tokens : evidence.TokenCounts()) {
    if (tokens > UINT64_MAX / (8 * rows)) continue;
    sizes.push_back(tokens * rows * 2);
    sizes.push_back(tokens * rows * 4);
  }
  uint64_t bytes = 0;
  size_t blocks = 0;
  bool loss_frame = false;
  const bool refused_one =
      evidence.refusal && std::any_of(sizes.begin(), sizes.end(), [&](uint64_t size) {
        return size <= evidence.refusal->requested && evidence.refusal->requested - size < 512;
      });
  for (const LiveRow& row : evidence.live) {
    if (std::find(sizes.begin(), sizes.end(), row.bytes) == sizes.end()) continue;
    if (row.kind == MemoryClass::kWeight || row.kind == MemoryClass::kGradient ||
        row.kind == MemoryClass::kOptimizerState || row.step != evidence.at.step)
      continue;
    Claim(&finding, row);
    bytes += row.bytes;
    ++blocks;
    loss_frame = loss_frame || IsLoss(evidence, row);
  }
  if (blocks == 0) return finding;
  loss_frame = loss_frame || (refused_one && HasFrame(evidence, evidence.at.stack, "cross_entropy"));
  const size_t counted = blocks + (refused_one ? 1 : 0);
  finding.numbers = {{"vocabulary", fmt::format("{} rows of {}", rows, heads.front().owner)},
                     {"blocks", fmt::format("{} of tokens x vocabulary, {} in all ({} of the peak){}", blocks,
                                            Size(bytes), Percent(bytes, evidence.used),
                                            refused_one ? "; the refused request is one more" : "")}};
  const uint64_t with_refused = bytes + (refused_one ? evidence.refusal->requested : 0);
  // A wide layer of a perceptron has such sizes too; a vocabulary is many times the width.
  constexpr uint64_t kVocabulary = 16;
  const bool plausible = loss_frame || rows >= kVocabulary * heads.front().width;
  if (!plausible || !Material(evidence, with_refused, kShare)) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = counted >= 2 && loss_frame ? Confidence::kHigh : Confidence::kMedium;
  if (!loss_frame) finding.missing.emplace_back("no frame or operator of the loss made one of the blocks");
  finding.sentence = fmt::format(
      "{} of the peak are logits and what the loss makes of them: {} of tokens x {} classes at once.",
      Size(bytes), counted == 1 ? "one block" : fmt::format("{} blocks", counted), rows);
  Advise(evidence, rows, sizes, bytes, &finding);
  return finding;
}

}  // namespace vramtrace::diagnose
