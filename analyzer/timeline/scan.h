#pragma once
// The first pass over a trace: peaks, steps, refusals, labels, and how long blocks of each call site live.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/timeline/local_peaks.h"
#include "analyzer/timeline/replay.h"
#include "analyzer/trace/trace_file.h"

namespace vramtrace::timeline {

struct Peak {
  uint64_t bytes = 0;
  Instant instant;
};

// An allocation that was refused for good: the caching allocator's report after its retries, or a refused
// driver call of somebody else.
struct Refusal {
  Instant instant;
  uint64_t requested = 0;         // bytes, as the caching allocator rounded them
  uint64_t driver_requested = 0;  // of the newest refused driver call before it; 0: none was seen
  uint64_t allocated_total = 0;   // PyTorch's own counters; 0 for a refusal outside of it
  uint64_t reserved_total = 0;
  model::StringId caller{};         // of the driver call
  model::StringId function{};       // likewise
  bool caching_allocator = true;    // reported by the caching allocator
  uint64_t allocations_before = 0;  // successful allocations on the device until then
};

// What one training step took on a device; bytes are of blocks.
struct StepRow {
  uint64_t minimum = UINT64_MAX;  // of allocated bytes, after an event of a block
  uint64_t reserved = 0;          // the peak
  uint64_t retries = 0;           // driver calls that were refused for lack of memory
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

struct DeviceScan {
  Peak allocated;
  Peak reserved;
  Peak used;    // as the device reports it
  Peak driver;  // what we saw taken from the driver
  uint64_t block_allocations = 0;
  uint64_t block_frees = 0;
  uint64_t driver_allocations = 0;
  uint64_t driver_frees = 0;
  uint64_t refused_driver_calls = 0;
  uint64_t managed_peak = 0;  // bytes of managed memory
  uint64_t blocks_without_request = 0;
  std::vector<Refusal> refusals;  // at most kMaxRefusals, the first and the newest
  uint64_t refusal_count = 0;
  std::vector<uint64_t> step_peaks;    // allocated, by step; at most kMaxStepPeaks
  std::vector<StepRow> steps;          // likewise, at most kMaxStepRows
  std::vector<LocalPeak> local_peaks;  // the highest first
  bool used_ever_known = false;
  Contradictions contradictions;
  CounterCheck counters;
  uint64_t total_bytes = 0;
  // The most that a step took whose events were left out, where no step in the trace took as much.
  uint64_t dropped_peak = 0;
  uint64_t dropped_peak_step = 0;
  uint64_t context_bytes = 0;  // what the device held just after the context came; 0: not known
  // The newest refusal was followed by no successful allocation: the run ended there.
  [[nodiscard]] bool EndedOutOfMemory() const;
  uint64_t allocations = 0;  // blocks and driver allocations that succeeded
};

inline constexpr size_t kMaxRefusals = 64;
inline constexpr size_t kMaxStepPeaks = 1 << 20;
inline constexpr size_t kMaxStepRows = 1 << 17;

struct LabelRow {
  uint64_t sequence = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  v1::Label::Kind kind{};
  model::StringId name{};
  model::StringId state_key{};
  model::StringId dtype{};
  std::vector<int64_t> shape;
  uint32_t device = 0;
};

struct InputRow {
  model::StringId name{};
  model::StringId dtype{};
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  uint64_t step = 0;
  bool on_device = false;
};

// How blocks that a forward call site allocates end. One line may allocate several: some are saved, some not.
struct SiteLives {
  uint32_t outlived_forward = 0;  // freed after the backward pass had begun
  uint32_t died_in_forward = 0;
  uint64_t longest_death = 0;  // of those that died in forward: the most events between allocation and free
};

struct HostMemory {
  uint64_t bytes = 0;  // pinned or registered, alive
  uint64_t peak = 0;
  uint64_t refused = 0;
};

struct Scan {
  std::map<uint32_t, DeviceScan> devices;
  std::vector<LabelRow> labels;
  std::vector<InputRow> inputs;         // of the first and of the newest step that has any
  std::vector<SiteLives> sites;         // by stack id
  std::vector<SiteLives> frame_sites;   // by the stack's innermost frame: the same line in every layer
  std::vector<std::string> optimizers;  // class names, each once
  uint64_t completed_steps = 0;
  uint64_t last_step_end = 0;  // sequence of the end of the last optimizer step; 0: there is none
  uint64_t events = 0;         // packets with a place in the sequence
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
  model::ThreadId main_thread{};  // of the first block
  HostMemory host;
};

[[nodiscard]] Scan ScanTrace(const std::shared_ptr<trace::TraceFile>& file,
                             const std::shared_ptr<const model::Tables>& tables,
                             const std::shared_ptr<const model::StackTable>& stacks);

// The same of the events up to a number, for a part of a run. What the file lacks was counted before.
[[nodiscard]] Scan ScanTraceUntil(const std::shared_ptr<trace::TraceFile>& file,
                                  const std::shared_ptr<const model::Tables>& tables,
                                  const std::shared_ptr<const model::StackTable>& stacks, uint64_t until);

}  // namespace vramtrace::timeline
