#pragma once
// The run step by step: what the rules about growth and about phases need beyond the one instant that a
// report explains. One pass over the trace; memory is a row a step.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "analyzer/model/phase.h"
#include "analyzer/timeline/replay.h"
#include "analyzer/trace/trace_file.h"

namespace vramtrace::diagnose {

inline constexpr size_t kPhases = 10;  // values of model::Phase

// A training step: from the end of the optimizer step before it to the end of its own. Bytes are `allocated`.
struct StepRow {
  uint64_t peak = 0;
  timeline::Instant peak_at;
  uint64_t low = UINT64_MAX;             // the least after the step's first event
  uint64_t reserved = 0;                 // the most
  std::array<uint64_t, kPhases> most{};  // by phase
  uint64_t segments_given_back = 0;      // of the caching allocator
  uint64_t segments_taken = 0;
};

struct History {
  std::vector<StepRow> steps;  // at most kMaxSteps; the last one may be unfinished
  uint64_t completed = 0;
  bool recomputes = false;           // a checkpointed forward ran again
  uint64_t peak_before_forward = 0;  // allocated, while nothing had been called yet
  timeline::Instant before_forward_at;
  [[nodiscard]] uint64_t Most(model::Phase phase, size_t from, size_t to) const;
};

inline constexpr size_t kMaxSteps = 1 << 20;

// Events after `until` are the program unwinding after it ran out of memory.
[[nodiscard]] History ReadHistory(const std::shared_ptr<trace::TraceFile>& file,
                                  const std::shared_ptr<const model::Tables>& tables,
                                  const std::shared_ptr<const model::StackTable>& stacks, uint32_t device,
                                  uint64_t until);

// A least-squares line through y[0], y[1], ...
struct Line {
  double slope = 0;
  double fit = 0;  // R squared; 0 where y does not vary
};
[[nodiscard]] Line FitLine(const std::vector<double>& y);

}  // namespace vramtrace::diagnose
