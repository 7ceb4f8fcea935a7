#pragma once
// One watched run: asks NVML, /proc and the growing trace, tick by tick. Knows neither the terminal nor how
// the program was started.

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "analyzer/nvml/nvml.h"
#include "analyzer/trace/tail.h"
#include "analyzer/watch/evidence.h"
#include "analyzer/watch/machine.h"
#include "analyzer/watch/progress.h"
#include "analyzer/watch/text.h"

namespace vramtrace::watch {

class Session {
 public:
  using Clock = std::chrono::steady_clock;

  // `nvml` may be null; `why_no_nvml` then says why.
  Session(std::unique_ptr<nvml::Library> nvml, std::string why_no_nvml, Plan plan, Given given);

  // No trace will come: where NVML does not list the program's processes (a container has process ids of its
  // own), every card is taken for the program's.
  void ExpectNoTrace() { no_trace_ = true; }
  // The trace to follow; a program makes it with its first CUDA call. Once it has steps it is kept.
  void Follow(const std::string& trace);
  [[nodiscard]] bool Following() const { return tail_ != nullptr && !facts_.steps().empty(); }

  // A quick look at the program's states, some ten times a second. `program` is the command's process; where
  // a trace says which process trains, that one is looked at.
  void Look(pid_t program, std::span<const pid_t> below);
  // Everything else, once a second: answers what can be shown.
  [[nodiscard]] Moment Sample(pid_t program, std::span<const pid_t> below);
  [[nodiscard]] Ended Finish();

  [[nodiscard]] const std::string& trace_problem() const { return trace_problem_; }
  [[nodiscard]] const TraceFacts& facts() const { return facts_; }

 private:
  void ReadTrace();
  [[nodiscard]] std::vector<CardSample> SampleCards(std::span<const pid_t> processes) const;
  [[nodiscard]] pid_t Trainer(pid_t program, std::span<const pid_t> below) const;
  [[nodiscard]] double Elapsed() const;

  std::unique_ptr<nvml::Library> nvml_;
  std::string why_no_nvml_;
  Plan plan_;
  Given given_;
  bool no_trace_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::time_point sampled_ = began_;
  std::unique_ptr<trace::TraceTail> tail_;
  std::string trace_problem_;
  TraceFacts facts_;
  Machine machine_;
  Observer observer_;
};

}  // namespace vramtrace::watch
