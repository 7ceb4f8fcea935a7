#include "analyzer/timeline/replay.h"

#include <algorithm>

#include "analyzer/model/parse_body.h"

namespace vramtrace::timeline {
namespace {

using model::Phase;
using trace::Event;
using trace::PacketKind;

bool ConcernsDevice(PacketKind kind) {
  switch (kind) {
    case PacketKind::kBlockAllocate:
    case PacketKind::kBlockFree:
    case PacketKind::kDriverAllocate:
    case PacketKind::kDriverFree:
    case PacketKind::kMemoryQuery:
    case PacketKind::kOutOfMemory:
    case PacketKind::kMemoryMap:
    case PacketKind::kMemoryUnmap:
      return true;
    default:
      return false;
  }
}

std::optional<Phase> PhaseByName(std::string_view name) {
  for (const Phase phase :
       {Phase::kLoad, Phase::kForward, Phase::kBackward, Phase::kOptimizer, Phase::kEvaluate, Phase::kSave}) {
    if (model::PhaseName(phase) == name) return phase;
  }
  return std::nullopt;
}

}  // namespace

Replay::Replay(std::shared_ptr<const model::Tables> tables, std::shared_ptr<const model::StackTable> stacks)
    : tables_(std::move(tables)), stacks_(std::move(stacks)) {}

Phase Replay::PhaseAt(const Event& event, const DeviceState& device) const {
  const Phase phase = model::PhaseOf((*stacks_)[event.stack], event.autograd, device.seen_forward);
  if (marks_.empty()) return phase;
  // A mark says more than "the script"; of a forward it can only say that it evaluates.
  const bool open = phase == Phase::kScript || phase == Phase::kLoad;
  const bool evaluates = phase == Phase::kForward && marks_.back() == Phase::kEvaluate;
  return open || evaluates ? marks_.back() : phase;
}

bool Replay::IsCachingAllocator(model::StringId caller) {
  const auto [entry, added] = caching_callers_.try_emplace(caller, false);
  if (added) entry->second = tables_->Text(caller).find("c10_cuda") != std::string_view::npos;
  return entry->second;
}

void Replay::ApplyStep(const Event& event) {
  v1::Step step;
  if (!model::ParseBody(event, &step)) return;
  if (step.edge() != v1::Step::EDGE_OPTIMIZER_END) return;
  // Several optimizers end the same step.
  if (completed_steps_ > 0 && step.number() < current_step_) return;
  // Of steps that retention left out only the last one's end is in the trace.
  const bool skipped = !tables_->dropped.empty() && step.number() > current_step_;
  completed_steps_ += skipped ? step.number() - current_step_ + 1 : 1;
  current_step_ = step.number() + 1;
}

void Replay::ApplyMark(const Event& event) {
  v1::PhaseMark mark;
  if (!model::ParseBody(event, &mark)) return;
  const std::optional<Phase> phase = PhaseByName(tables_->Text(model::StringId{mark.name()}));
  if (!phase) return;
  if (!mark.end()) {
    marks_.push_back(*phase);
    return;
  }
  const auto begun = std::find(marks_.rbegin(), marks_.rend(), *phase);
  if (begun != marks_.rend()) marks_.erase(std::next(begun).base());
}

void Replay::ApplyInput(const Event& event) {
  v1::InputTensor input;
  if (!model::ParseBody(event, &input) || !input.on_device()) return;
  const uint64_t address = event.base_address + static_cast<uint64_t>(input.address_delta());
  // The packet does not say which device; addresses of different devices do not overlap.
  for (auto& [index, device] : devices_) {
    if (device.memory.MarkInput(address)) return;
  }
}

void Replay::ApplyToDevice(const Event& event, Applied* applied) {
  DeviceMemory& memory = applied->device->memory;
  switch (event.kind) {
    case PacketKind::kBlockAllocate:
      applied->allocated = memory.Allocate(event, applied->instant.phase, current_step_);
      memory.CheckCounters(event);
      break;
    case PacketKind::kBlockFree:
      applied->freed = memory.Free(event);
      memory.CheckCounters(event);
      break;
    case PacketKind::kDriverAllocate:
      memory.DriverAllocate(event, IsCachingAllocator(event.caller));
      break;
    case PacketKind::kDriverFree:
      memory.DriverFree(event);
      break;
    case PacketKind::kMemoryMap:
      memory.Map(event);
      break;
    case PacketKind::kMemoryUnmap:
      memory.Unmap(event);
      break;
    case PacketKind::kMemoryQuery:
      memory.Query(event);
      break;
    case PacketKind::kOutOfMemory:
      memory.CheckCounters(event);
      break;
    default:
      break;
  }
}

Applied Replay::Apply(const Event& event) {
  Applied applied;
  if (event.kind == PacketKind::kStep) ApplyStep(event);
  if (event.kind == PacketKind::kPhaseMark) ApplyMark(event);
  if (event.kind == PacketKind::kInputTensor) ApplyInput(event);
  if (!ConcernsDevice(event.kind)) return applied;

  applied.device_index = trace::Raw(event.device);
  DeviceState& device = devices_[applied.device_index];
  applied.device = &device;
  const Phase phase = PhaseAt(event, device);
  applied.instant = {event.sequence, event.kind,  event.time_ns, current_step_,
                     phase,          event.stack, event.thread,  event.autograd};
  if (phase == Phase::kForward) device.seen_forward = true;
  ApplyToDevice(event, &applied);
  const bool block_event = event.kind == PacketKind::kBlockAllocate || event.kind == PacketKind::kBlockFree;
  if (block_event && (phase == Phase::kBackward || phase == Phase::kRecompute)) {
    device.last_backward_sequence = event.sequence;
  }
  return applied;
}

}  // namespace vramtrace::timeline
