#pragma once
// The second pass: what is alive at chosen instants, and what became of it afterwards.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "analyzer/timeline/replay.h"
#include "analyzer/trace/trace_file.h"

namespace vramtrace::timeline {

// Which of the two came first after a block's allocation, on its device.
enum class NextPhase : uint8_t { kNeither, kForward, kBackward };
// Which of the two a phase is of; recomputing is a part of backward.
[[nodiscard]] NextPhase PassOf(model::Phase phase);

// A block that is alive at the instant.
struct LiveBlock {
  Block block;
  NextPhase next = NextPhase::kNeither;
  // Its end, when the trace has one that says something: a free while an out-of-memory error unwinds does
  // not.
  bool freed = false;
  uint64_t free_sequence = 0;
  model::Phase free_phase = model::Phase::kScript;
  model::ThreadId free_thread{};
  model::StackId free_stack{};
  bool backward_followed = false;  // a backward event came between its allocation and its end
  bool outlived_step = false;      // an optimizer step ended between its allocation and its end
  model::StackId forward_stack{};  // of the forward that made the running autograd node; kNone: not known
  uint64_t forward_sequence = 0;   // of that forward's event
};

struct SnapshotRequest {
  uint32_t device = 0;
  Instant instant;
  // Frees after this sequence number are the program unwinding, not evidence.
  uint64_t evidence_until = UINT64_MAX;
};

struct Snapshot {
  SnapshotRequest request;
  bool found = false;  // the instant's event was met
  uint64_t allocated = 0;
  uint64_t reserved = 0;
  uint64_t driver_bytes = 0;
  std::optional<uint64_t> device_used;
  bool used_is_recorded = false;
  std::optional<uint64_t> context_bytes;
  uint64_t total_bytes = 0;
  int64_t unrecorded_allocated = 0;  // PyTorch's counter less ours, where they were compared last
  int64_t unrecorded_reserved = 0;
  // Of the forward that made the node which ran at the instant; kNone: not known, or none ran.
  model::StackId forward_stack{};
  uint64_t forward_sequence = 0;
  std::map<uint64_t, Segment> segments;
  std::map<uint64_t, Segment> physical;
  std::map<uint64_t, Mapping> mappings;
  std::vector<LiveBlock> blocks;  // by address
};

[[nodiscard]] std::vector<Snapshot> TakeSnapshots(const std::shared_ptr<trace::TraceFile>& file,
                                                  const std::shared_ptr<const model::Tables>& tables,
                                                  const std::shared_ptr<const model::StackTable>& stacks,
                                                  const std::vector<SnapshotRequest>& requests);

}  // namespace vramtrace::timeline
