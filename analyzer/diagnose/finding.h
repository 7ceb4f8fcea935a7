#pragma once
// What one rule says of one run, and the list of rules.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/attribution/verdict.h"
#include "analyzer/diagnose/evidence.h"
#include "analyzer/forecast/stream.h"

namespace vramtrace::diagnose {

using attribution::Confidence;

enum class State : uint8_t {
  kAbsent,     // the signature is not there
  kTooLittle,  // something of it is, below the evidence that a verdict needs: numbers only
  kFound,
  kNotRecorded,  // traces do not hold what the rule would need
};

// How the peak after a change is predicted, where the trace holds whole steps.
enum class Forecast : uint8_t { kNone, kTechnique, kWithout, kExpandable, kBatch };

struct Predicted {
  uint64_t used = 0;  // of the device
  uint64_t low = 0;   // 95 % band
  uint64_t high = 0;
  bool fits = true;  // the card's total
};

struct Remedy {
  std::string change;       // the setting or the line to change
  uint64_t saves_most = 0;  // of the bytes at the instant; 0: not known beforehand
  Forecast forecast = Forecast::kNone;
  std::string technique = {};  // kTechnique: the key; left out where no such row exists yet or it is on
  // kWithout: requests that would not be made.
  std::function<bool(const forecast::Stream&, const forecast::Request&)> without = {};
  uint64_t batch = 0;  // kBatch
  std::optional<Predicted> predicted = {};
};

// A share of a term of the identity: memory that is no block.
struct Part {
  std::string term;  // key
  uint64_t bytes = 0;
};

struct Finding {
  State state = State::kAbsent;
  Confidence confidence = Confidence::kLow;
  std::string sentence;
  std::vector<std::pair<std::string, std::string>> numbers;
  std::vector<std::string> missing;  // evidence that would raise the confidence
  std::vector<size_t> blocks;        // of the instant that are due to it: indices into Snapshot::blocks
  std::vector<Part> parts;           // likewise, of what is no block
  std::vector<Remedy> remedies;
  std::vector<std::string> cannot;  // what people advise and what cannot close the gap here, with the reason
};

struct Row {
  std::string_view id;   // D10
  std::string_view key;  // logits
  std::string_view title;
  std::string_view signature;   // what is looked for
  std::string_view needs;       // evidence
  std::string_view confidence;  // when it is high, when medium
  std::string_view limits;      // of the advice
  Finding (*decide)(const Evidence& evidence) = nullptr;
};

// Every row of diagnoses.def, in the order in which they are decided.
[[nodiscard]] std::span<const Row> Rows();

// The functions of the rows.
Finding LogitsSpike(const Evidence& evidence);
Finding StateAtFirstStep(const Evidence& evidence);
Finding OptimizerTemporaries(const Evidence& evidence);
Finding Leak(const Evidence& evidence);
Finding PlateauGrowth(const Evidence& evidence);
Finding LongSample(const Evidence& evidence);
Finding Fragmentation(const Evidence& evidence);
Finding EvaluationPeak(const Evidence& evidence);
Finding SavePeak(const Evidence& evidence);
Finding NoCheckpointing(const Evidence& evidence);
Finding QuadraticAttention(const Evidence& evidence);
Finding SmallerCard(const Evidence& evidence);
Finding OtherTenants(const Evidence& evidence);
Finding ContextAndLibraries(const Evidence& evidence);
Finding HostMemory(const Evidence& evidence);
Finding ActivationsDominate(const Evidence& evidence);
Finding NotQuantised(const Evidence& evidence);
Finding ExtraModels(const Evidence& evidence);
Finding ConvolutionWorkspace(const Evidence& evidence);
Finding ShardedInitialisation(const Evidence& evidence);
Finding ResumePeak(const Evidence& evidence);
Finding DeviceImbalance(const Evidence& evidence);
Finding NotRecorded(const Evidence& evidence);

// Words
// ------------------------------------------------------------------------------------------------------

[[nodiscard]] std::string Size(uint64_t bytes);  // as reports print sizes
[[nodiscard]] std::string Percent(uint64_t part, uint64_t whole);

// Helpers of rules
// -------------------------------------------------------------------------------------------

// `bytes` are at least `share` of what the device held at the instant.
[[nodiscard]] bool Material(const Evidence& evidence, uint64_t bytes, double share);
void Claim(Finding* finding, const LiveRow& row);
[[nodiscard]] uint64_t ClaimedBytes(const Evidence& evidence, const Finding& finding);
// Half the batch: the remedy that helps against whatever grows with it.
void AdviseHalfBatch(const Evidence& evidence, Finding* finding);

}  // namespace vramtrace::diagnose
