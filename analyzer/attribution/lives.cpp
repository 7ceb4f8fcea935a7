#include "analyzer/attribution/lives.h"

#include <algorithm>
#include <map>
#include <vector>

#include "analyzer/timeline/forward_index.h"
#include "analyzer/timeline/snapshot.h"
#include "analyzer/trace/event_stream.h"

namespace vramtrace::attribution {
namespace {

using timeline::NextPhase;
using timeline::Snapshot;
using trace::Event;
using trace::PacketKind;

class Collector {
 public:
  Collector(std::shared_ptr<const model::Tables> tables, std::shared_ptr<const model::StackTable> stacks,
            const timeline::Scan& scan, const std::function<void(const Life&)>& take, LivesObserver* observer)
      : tables_(tables),
        stacks_(stacks),
        scan_(scan),
        take_(take),
        observer_(observer),
        parameters_(*tables, scan),
        replay_(tables, std::move(stacks)) {}

  void Add(const Event& event) {
    JoinLabelsBefore(event.sequence);
    const uint64_t steps_before = replay_.completed_steps();
    const timeline::Applied applied = replay_.Apply(event);
    if (replay_.completed_steps() != steps_before) {
      forwards_.EndStep();
      last_step_end_ = event.sequence;
      step_ends_.push_back(event.sequence);
    }
    if (applied.device == nullptr) return;
    const Tick tick = tick_++;
    if (observer_ != nullptr) observer_->See(event, applied, tick);
    if (event.kind != PacketKind::kBlockAllocate && event.kind != PacketKind::kBlockFree) return;
    Device& device = DeviceOf(applied.device_index);
    if (event.kind == PacketKind::kBlockAllocate) forwards_.Add(event);
    // The first forward or backward event after an allocation says what came next.
    if (const NextPhase next = timeline::PassOf(applied.instant.phase); next != NextPhase::kNeither) {
      Resolve(next, &device);
    }
    if (applied.allocated != nullptr) Begin(*applied.allocated, applied.device_index, tick, &device);
    if (applied.freed) End(*applied.freed, applied, tick, &device);
  }

  void Finish() {
    JoinLabelsBefore(UINT64_MAX);
    for (auto& entry : devices_) {
      Device& device = entry.second;
      Resolve(NextPhase::kNeither, &device);
      timeline::DeviceState& state = replay_.devices()[entry.first];
      state.memory.blocks().ForEach([&](uint64_t address, const timeline::Block& block) {
        const auto found = device.alive.find(address);
        if (found != device.alive.end()) slots_[found->second].life.live.block = block;
      });
      for (auto& [address, slot] : device.alive) {
        FinishUnfreed(state, &slots_[slot].life.live, device);
        Emit(slot, device);
      }
    }
    if (observer_ != nullptr) observer_->Finish(replay_.devices());
  }

 private:
  struct Open {
    Life life;
    std::vector<timeline::LabelRow> labels;
    bool resolved = false;  // `next` is known
    bool ended = false;
  };
  struct Device {
    uint32_t index = 0;
    std::map<uint64_t, size_t> alive;  // address to slot
    std::vector<size_t> unresolved;
    Snapshot surroundings;  // what rules ask about the instant; its only block is the one being explained
    bool ended_out_of_memory = false;
    uint64_t evidence_until = UINT64_MAX;
    uint64_t workspace_bytes = 0;
  };

  Device& DeviceOf(uint32_t index) {
    const auto [entry, added] = devices_.try_emplace(index);
    Device& device = entry->second;
    if (!added) return device;
    device.index = index;
    device.surroundings.request.device = index;
    device.surroundings.blocks.resize(1);
    const auto known = tables_->devices.find(index);
    device.workspace_bytes =
        CublasWorkspaceBytes(tables_->process, known == tables_->devices.end() ? nullptr : &known->second);
    const auto scanned = scan_.devices.find(index);
    if (scanned == scan_.devices.end()) return device;
    device.surroundings.request.instant = scanned->second.allocated.instant;
    if (scanned->second.EndedOutOfMemory()) {
      device.ended_out_of_memory = true;
      device.evidence_until = scanned->second.refusals.back().instant.sequence;
      device.surroundings.request.instant = scanned->second.refusals.back().instant;
      device.surroundings.request.evidence_until = device.evidence_until;
    }
    return device;
  }

  // Labels are in the order of events; each goes to the block that holds its address at that time.
  void JoinLabelsBefore(uint64_t sequence) {
    for (; next_label_ < scan_.labels.size() && scan_.labels[next_label_].sequence < sequence;
         ++next_label_) {
      const timeline::LabelRow& row = scan_.labels[next_label_];
      const auto device = devices_.find(row.device);
      if (device == devices_.end()) continue;
      const std::map<uint64_t, size_t>& alive = device->second.alive;
      auto after = alive.upper_bound(row.address);
      if (after == alive.begin()) continue;
      Open& open = slots_[std::prev(after)->second];
      const timeline::Block& block = open.life.live.block;
      if (row.address - block.address < block.bytes) open.labels.push_back(row);
    }
  }

  void Resolve(NextPhase next, Device* device) {
    for (const size_t slot : device->unresolved) {
      Open& open = slots_[slot];
      open.life.live.next = next;
      open.resolved = true;
      if (open.ended) Emit(slot, *device);
    }
    device->unresolved.clear();
  }

  void Begin(const timeline::Block& block, uint32_t index, Tick tick, Device* device) {
    const auto [place, added] = device->alive.try_emplace(block.address, 0);
    if (!added) {  // its free was lost; the new block replaces it
      slots_[place->second].life.freed = tick;
      Close(place->second, *device);
    }
    size_t slot = slots_.size();
    if (free_slots_.empty()) {
      slots_.emplace_back();
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
      slots_[slot] = {};
    }
    place->second = slot;
    Life& life = slots_[slot].life;
    life.device = index;
    life.ordinal = ordinal_++;
    life.allocated = tick;
    life.live.block = block;
    if (const timeline::ForwardIndex::Entry* forward = forwards_.Find(block.autograd)) {
      life.live.forward_stack = forward->stack;
      life.live.forward_sequence = forward->sequence;
    }
    device->unresolved.push_back(slot);
  }

  void End(const timeline::Block& block, const timeline::Applied& applied, Tick tick, Device* device) {
    const auto found = device->alive.find(block.address);
    if (found == device->alive.end()) return;
    const size_t slot = found->second;
    device->alive.erase(found);
    Life& life = slots_[slot].life;
    life.freed = tick;
    timeline::LiveBlock& live = life.live;
    live.block = block;
    if (applied.instant.sequence > device->evidence_until) {
      FinishUnfreed(*applied.device, &live, *device);
    } else {
      live.freed = true;
      live.free_sequence = applied.instant.sequence;
      live.free_phase = applied.instant.phase;
      live.free_thread = applied.instant.thread;
      live.free_stack = applied.instant.stack;
      live.backward_followed = applied.device->last_backward_sequence > block.sequence;
      live.outlived_step = last_step_end_ > block.sequence;
    }
    Close(slot, *device);
  }

  void FinishUnfreed(const timeline::DeviceState& state, timeline::LiveBlock* live,
                     const Device& device) const {
    const uint64_t begin = live->block.sequence;
    const uint64_t backward = state.last_backward_sequence;
    live->backward_followed = backward > begin && backward < device.evidence_until;
    const auto step_end = std::upper_bound(step_ends_.begin(), step_ends_.end(), begin);
    live->outlived_step = step_end != step_ends_.end() && *step_end < device.evidence_until;
  }

  void Close(size_t slot, Device& device) {
    slots_[slot].ended = true;
    if (slots_[slot].resolved) Emit(slot, device);
  }

  void Emit(size_t slot, Device& device) {
    Open& open = slots_[slot];
    Surroundings around{tables_.get(),         stacks_.get(), &scan_,
                        &device.surroundings,  &parameters_,  device.ended_out_of_memory,
                        device.workspace_bytes};
    device.surroundings.blocks[0] = open.life.live;
    BlockLabels labels;
    timeline::Scan own;  // only this block's labels: JoinLabels looks at every one it is given
    if (!open.labels.empty()) {
      own.labels = std::move(open.labels);
      labels = JoinLabels(own, device.surroundings).front();
    }
    open.life.explained = ExplainBlock(around, 0, labels);
    take_(open.life);
    free_slots_.push_back(slot);
  }

  std::shared_ptr<const model::Tables> tables_;
  std::shared_ptr<const model::StackTable> stacks_;
  const timeline::Scan& scan_;
  const std::function<void(const Life&)>& take_;
  LivesObserver* observer_;
  ParameterSizes parameters_;
  timeline::Replay replay_;
  timeline::ForwardIndex forwards_;
  std::map<uint32_t, Device> devices_;
  std::vector<Open> slots_;
  std::vector<size_t> free_slots_;
  std::vector<uint64_t> step_ends_;
  uint64_t last_step_end_ = 0;
  size_t next_label_ = 0;
  uint64_t ordinal_ = 0;
  Tick tick_ = 0;
};

}  // namespace

void ForEachLife(const std::shared_ptr<trace::TraceFile>& file,
                 const std::shared_ptr<const model::Tables>& tables,
                 const std::shared_ptr<const model::StackTable>& stacks, const timeline::Scan& scan,
                 const std::function<void(const Life&)>& take, LivesObserver* observer, uint64_t until) {
  Collector collector(tables, stacks, scan, take, observer);
  trace::EventStream stream(file);
  Event event;
  while (stream.Next(&event)) {
    if (event.has_sequence && event.sequence > until) break;
    collector.Add(event);
  }
  collector.Finish();
}

}  // namespace vramtrace::attribution
