#include "analyzer/timeline/snapshot.h"

#include <algorithm>

#include "analyzer/timeline/forward_index.h"
#include "analyzer/trace/event_stream.h"

namespace vramtrace::timeline {
namespace {

using model::Phase;
using trace::Event;
using trace::PacketKind;

// Consecutive block events of one device that are all forward, or all backward.
struct PhaseRun {
  NextPhase kind = NextPhase::kNeither;
  uint64_t last_sequence = 0;
};

// The runs of one device, in order; a run of each kind for every micro-batch.
class PhaseRuns {
 public:
  void Add(Phase phase, uint64_t sequence) {
    const NextPhase kind = PassOf(phase);
    if (kind == NextPhase::kNeither) return;
    if (runs_.empty() || runs_.back().kind != kind) runs_.push_back({kind, sequence});
    runs_.back().last_sequence = sequence;
  }
  [[nodiscard]] NextPhase After(uint64_t sequence) const {
    const auto next =
        std::upper_bound(runs_.begin(), runs_.end(), sequence,
                         [](uint64_t value, const PhaseRun& run) { return value < run.last_sequence; });
    return next == runs_.end() ? NextPhase::kNeither : next->kind;
  }

 private:
  std::vector<PhaseRun> runs_;
};

class Collector {
 public:
  Collector(std::shared_ptr<const model::Tables> tables, std::shared_ptr<const model::StackTable> stacks,
            const std::vector<SnapshotRequest>& requests)
      : replay_(std::move(tables), std::move(stacks)) {
    for (const SnapshotRequest& request : requests) pending_.emplace_back().snapshot.request = request;
  }

  void Add(const Event& event) {
    const uint64_t steps_before = replay_.completed_steps();
    const Applied applied = replay_.Apply(event);
    if (replay_.completed_steps() != steps_before) {
      forwards_.EndStep();
      step_ends_.push_back(event.sequence);
    }
    if (applied.device == nullptr) return;
    if (event.kind == PacketKind::kBlockAllocate) forwards_.Add(event);
    if (event.kind == PacketKind::kBlockAllocate || event.kind == PacketKind::kBlockFree) {
      runs_[applied.device_index].Add(applied.instant.phase, event.sequence);
    }
    for (Pending& pending : pending_) {
      const SnapshotRequest& request = pending.snapshot.request;
      if (request.device != applied.device_index) continue;
      if (pending.snapshot.found && applied.freed) Follow(applied, &pending);
      const bool is_instant =
          request.instant.sequence == event.sequence && request.instant.kind == event.kind;
      if (!pending.snapshot.found && is_instant) Take(*applied.device, &pending);
    }
  }

  std::vector<Snapshot> Finish() {
    std::vector<Snapshot> snapshots;
    for (Pending& pending : pending_) {
      const uint32_t device = pending.snapshot.request.device;
      for (LiveBlock& live : pending.snapshot.blocks) {
        live.next = runs_[device].After(live.block.sequence);
        const uint64_t end = live.freed ? live.free_sequence : pending.snapshot.request.evidence_until;
        if (!live.freed) {
          const uint64_t backward = replay_.devices()[device].last_backward_sequence;
          live.backward_followed = backward > live.block.sequence && backward < end;
        }
        const auto step_end = std::upper_bound(step_ends_.begin(), step_ends_.end(), live.block.sequence);
        live.outlived_step = step_end != step_ends_.end() && *step_end < end;
      }
      snapshots.push_back(std::move(pending.snapshot));
    }
    return snapshots;
  }

 private:
  struct Pending {
    Snapshot snapshot;
    AddressMap<size_t> index;  // address to the block's place in `snapshot.blocks`, until it is freed
  };

  void Take(const DeviceState& device, Pending* pending) {
    const DeviceMemory& memory = device.memory;
    Snapshot& snapshot = pending->snapshot;
    snapshot.found = true;
    snapshot.allocated = memory.allocated();
    snapshot.reserved = memory.reserved();
    snapshot.driver_bytes = memory.driver_bytes();
    snapshot.device_used = memory.device_used();
    snapshot.used_is_recorded = memory.used_is_recorded();
    snapshot.context_bytes = memory.context_bytes();
    snapshot.total_bytes = memory.total_bytes();
    snapshot.unrecorded_allocated = memory.counters().last_allocated_difference;
    snapshot.unrecorded_reserved = memory.counters().last_reserved_difference;
    snapshot.segments = memory.segments();
    snapshot.physical = memory.physical();
    snapshot.mappings = memory.mappings();
    if (const ForwardIndex::Entry* forward = forwards_.Find(snapshot.request.instant.autograd)) {
      snapshot.forward_stack = forward->stack;
      snapshot.forward_sequence = forward->sequence;
    }
    memory.blocks().ForEach([&](uint64_t, const Block& block) {
      LiveBlock live;
      live.block = block;
      if (const ForwardIndex::Entry* forward = forwards_.Find(block.autograd)) {
        live.forward_stack = forward->stack;
        live.forward_sequence = forward->sequence;
      }
      snapshot.blocks.push_back(live);
    });
    std::sort(snapshot.blocks.begin(), snapshot.blocks.end(),
              [](const LiveBlock& a, const LiveBlock& b) { return a.block.address < b.block.address; });
    for (size_t i = 0; i < snapshot.blocks.size(); ++i)
      pending->index.Insert(snapshot.blocks[i].block.address, i);
  }

  // One of the snapshot's blocks may have been freed.
  void Follow(const Applied& applied, Pending* pending) {
    if (applied.instant.sequence > pending->snapshot.request.evidence_until) return;
    size_t* place = pending->index.Find(applied.freed->address);
    if (place == nullptr) return;
    LiveBlock& live = pending->snapshot.blocks[*place];
    pending->index.Erase(place);
    live.freed = true;
    live.free_sequence = applied.instant.sequence;
    live.free_phase = applied.instant.phase;
    live.free_thread = applied.instant.thread;
    live.free_stack = applied.instant.stack;
    live.backward_followed = applied.device->last_backward_sequence > live.block.sequence;
  }

  Replay replay_;
  ForwardIndex forwards_;
  std::map<uint32_t, PhaseRuns> runs_;
  std::vector<uint64_t> step_ends_;
  std::vector<Pending> pending_;
};

}  // namespace

NextPhase PassOf(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return NextPhase::kForward;
    case Phase::kBackward:
    case Phase::kRecompute:
      return NextPhase::kBackward;
    default:
      return NextPhase::kNeither;
  }
}

std::vector<Snapshot> TakeSnapshots(const std::shared_ptr<trace::TraceFile>& file,
                                    const std::shared_ptr<const model::Tables>& tables,
                                    const std::shared_ptr<const model::StackTable>& stacks,
                                    const std::vector<SnapshotRequest>& requests) {
  Collector collector(tables, stacks, requests);
  trace::EventStream stream(file);
  while (const trace::Event* event = stream.Next()) collector.Add(*event);
  return collector.Finish();
}

}  // namespace vramtrace::timeline
