#pragma once
// Answers "what would it take, and would it fit" for one recorded run. Predictions are made once and kept.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/forecast/bands.h"
#include "analyzer/forecast/card.h"
#include "analyzer/forecast/orders.h"
#include "analyzer/forecast/replay.h"
#include "analyzer/forecast/size_laws.h"
#include "analyzer/forecast/technique.h"
#include "analyzer/trace/result.h"

namespace vramtrace::forecast {

// The run at another batch, with techniques, on a card without a limit.
struct Prediction {
  uint64_t batch = 0;
  std::vector<Chosen> techniques;
  std::string refused;  // why a technique cannot be applied; empty: it can, and the rest holds
  std::shared_ptr<const Stream> stream;
  ReplayOptions options;
  Outcome outcome;
  // Where steps vary in size: the reserved bytes of other orders of them. Verdicts are of the worst.
  std::shared_ptr<const Orders> orders;  // nullptr: every step is alike
  Band band;
};

// A technique, or several, that the run does not have on.
struct Candidate {
  const Prediction* prediction = nullptr;
  Judgement judgement;
  Price price = Price::kNothing;  // the dearest of the techniques'
  double slower_low = 0;          // shares of the step time, of all techniques together
  double slower_high = 0;
  int64_t saves = 0;        // device used, against the run without it
  uint64_t saves_most = 0;  // at the optimistic end of the band
};

struct Advice {
  const Prediction* as_is = nullptr;  // the run at the batch asked for, with the techniques asked for
  Judgement judgement;
  std::vector<const Technique*> already_on;
  std::vector<Candidate> fitting;        // the cheapest first
  std::vector<Candidate> falling_short;  // save something, not enough; the best first
  std::vector<Candidate> useless;        // even their greatest saving is below the shortage
  std::vector<const Prediction*> refused;
};

class Planner {
 public:
  // One recording, or two of one program with different batches. `streams` is not empty. Errors: streams of
  // two devices, of the same batch, or of an unknown one; what OptionsOf says.
  [[nodiscard]] static trace::Result<std::shared_ptr<Planner>> Make(std::vector<Stream> streams);

  [[nodiscard]] const RunFacts& facts() const { return streams_.front()->facts; }
  [[nodiscard]] bool two_recordings() const { return streams_.size() > 1; }
  [[nodiscard]] std::vector<uint64_t> RecordedBatches() const;  // those that are known
  [[nodiscard]] const Alignment& alignment() const { return alignment_; }
  // The recorded run, replayed: its peaks equal the recorded ones where the replay is exact.
  [[nodiscard]] const Prediction& recorded();
  [[nodiscard]] bool ReplayIsExact();
  [[nodiscard]] Evidence EvidenceFor(uint64_t batch, std::span<const Chosen> chosen) const;

  // Valid as long as the planner.
  [[nodiscard]] const Prediction& Predict(uint64_t batch, std::span<const Chosen> chosen);
  [[nodiscard]] Judgement JudgeOn(const Prediction& prediction, const Card& card) const;
  // The largest batch that fits with the upper end of its band; nullopt where not even 1 does, and where the
  // batch is not known. `kMostBatch` stands for "no limit found".
  static constexpr uint64_t kMostBatch = uint64_t{1} << 20;
  [[nodiscard]] std::optional<uint64_t> LargestBatch(const Card& card, std::span<const Chosen> chosen);
  [[nodiscard]] Advice Advise(const Card& card, uint64_t batch, std::span<const Chosen> chosen);

 private:
  Planner() = default;
  [[nodiscard]] size_t NearestTo(uint64_t batch) const;  // place in streams_
  // The stream with the techniques on, at its own batch: edits do not depend on the batch that is asked for.
  [[nodiscard]] const std::variant<Stream, std::string>& EditedFor(uint64_t batch,
                                                                   std::span<const Chosen> chosen);
  [[nodiscard]] std::vector<Candidate> WeighAlone(const Card& card, uint64_t batch,
                                                  std::span<const Chosen> chosen, Advice* advice);
  void WeighPairs(const Card& card, uint64_t batch, size_t base, std::vector<const Candidate*> partial,
                  Advice* advice);
  [[nodiscard]] Candidate Weigh(const Prediction& prediction, size_t base, const Card& card,
                                const Advice& advice) const;

  std::vector<std::shared_ptr<const Stream>> streams_;  // by ascending batch
  ReplayOptions options_;
  Alignment alignment_;
  std::map<std::string, std::variant<Stream, std::string>> edited_;
  std::map<std::string, std::unique_ptr<Prediction>> predictions_;
};

// "checkpointing" or "lora:rank=8", as ParseTechnique reads it.
[[nodiscard]] std::string TextOf(const Chosen& chosen);

}  // namespace vramtrace::forecast
