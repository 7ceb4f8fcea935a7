#pragma once
// What a watched run left for its diagnosis: numbers over the whole run after its warm-up, from the trace,
// NVML, /proc and the user. Nothing here judges.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/nvml/nvml.h"
#include "analyzer/watch/machine.h"
#include "analyzer/watch/trace_facts.h"

namespace vramtrace::watch {

// One card at one time, as NVML or the trace says.
struct CardSample {
  uint32_t index = 0;
  std::string name;
  uint64_t total = 0;
  uint64_t used = 0;
  std::optional<nvml::Utilization> utilization;
  std::optional<unsigned> celsius;
  std::optional<double> watts;
  std::optional<double> watts_limit;
  std::optional<unsigned> clock;
  std::optional<unsigned> clock_most;
  std::optional<uint64_t> throttle;
};

class Mean {
 public:
  void Add(double value) {
    sum_ += value;
    ++count_;
    most_ = count_ == 1 || value > most_ ? value : most_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] double Value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] double Most() const { return most_; }

 private:
  double sum_ = 0;
  double most_ = 0;
  size_t count_ = 0;
};

struct CardEvidence {
  std::string name;
  uint64_t total = 0;
  uint64_t used_most = 0;
  Mean utilization;  // percent
  Mean bandwidth;    // percent of the time
  Mean celsius;
  Mean watts;
  std::optional<double> watts_limit;
  Mean clock;
  std::optional<double> clock_most;
  Mean thermal;       // 1 where a sample was throttled by heat, 0 where not
  Mean power;         // likewise by power
  bool seen = false;  // by NVML
};

// Steps after the warm-up; seconds are of one step.
struct StepEvidence {
  uint64_t completed = 0;
  size_t counted = 0;
  double mean = 0;
  double median = 0;
  double data = 0;  // mean; 0 too where no loader was seen
  double allocator = 0;
  double blocks = 0;
  double block_bytes = 0;  // mean of a block
  double input_bytes = 0;
  uint64_t retries = 0;                              // in counted steps
  std::map<uint64_t, std::vector<double>> by_batch;  // seconds without waiting for data
};

struct Given {
  std::optional<double>
      one_card_step;  // seconds, measured by the user on one card with the same batch a card
};

struct Evidence {
  std::vector<CardEvidence> cards;  // those that the program uses, where that is known
  StepEvidence steps;
  Loader loader;
  Rates host;  // means
  size_t host_looks = 0;
  double cores = 1;
  RemoteFiles remote;
  uint64_t pinned_bytes = 0;
  uint32_t processes = 1;  // ranks of the run
  bool traced = false;     // a trace was read
  std::string why_no_nvml;
  Given given;

  [[nodiscard]] const CardEvidence* Fullest() const;
  // Percent, mean over the cards; nothing where NVML did not answer.
  [[nodiscard]] std::optional<double> Utilization() const;
  // Share of the step spent waiting for data; nothing where no step or no loader was seen.
  [[nodiscard]] std::optional<double> DataShare() const;
};

// The first steps compile, load kernels and grow the cache.
inline constexpr size_t kWarmUpSteps = 3;
// Fewer steps or samples than this are no evidence for a verdict.
inline constexpr size_t kLeastSteps = 5;
inline constexpr size_t kLeastSamples = 3;

// Gathers samples into evidence.
class Observer {
 public:
  // `steady`: the program trains. Before that rates mean nothing; how full the card is counts always.
  void AddCard(const CardSample& sample, bool steady);
  void AddHost(const Rates& rates);
  [[nodiscard]] Evidence Finish(const TraceFacts& facts, const RemoteFiles& remote) const;

 private:
  std::map<uint32_t, CardEvidence> cards_;
  std::array<Mean, 9> host_;
};

[[nodiscard]] StepEvidence SumUp(const std::vector<StepTime>& steps);

}  // namespace vramtrace::watch
