#pragma once
// Applies the events of a trace, in order, to the memory of every device, and keeps track of steps and
// phases. Memory is bounded by what is alive, not by how long the program ran.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "analyzer/model/phase.h"
#include "analyzer/model/stack_facts.h"
#include "analyzer/model/tables.h"
#include "analyzer/timeline/device_memory.h"
#include "analyzer/trace/event.h"

namespace vramtrace::timeline {

// One instant of the program: an event and where the program stood.
struct Instant {
  uint64_t sequence = 0;
  trace::PacketKind kind = trace::PacketKind::kNone;
  uint64_t time_ns = 0;
  uint64_t step = 0;
  model::Phase phase = model::Phase::kLoad;
  model::StackId stack{};
  model::ThreadId thread{};
  trace::AutogradPosition autograd;
};

// A device and what the lifetime rules need to know of its past.
struct DeviceState {
  DeviceMemory memory;
  bool seen_forward = false;
  uint64_t last_backward_sequence = 0;  // of the newest block event in backward or recompute; 0: none yet
};

// What an event did.
struct Applied {
  DeviceState* device = nullptr;  // nullptr: nothing to do with a device
  uint32_t device_index = 0;
  Instant instant;
  const Block* allocated = nullptr;  // valid until the next Apply
  std::optional<Block> freed;
};

class Replay {
 public:
  Replay(std::shared_ptr<const model::Tables> tables, std::shared_ptr<const model::StackTable> stacks);

  Applied Apply(const trace::Event& event);

  [[nodiscard]] std::map<uint32_t, DeviceState>& devices() { return devices_; }
  // The step that is under way: 0 before the end of the first.
  [[nodiscard]] uint64_t current_step() const { return current_step_; }
  [[nodiscard]] uint64_t completed_steps() const { return completed_steps_; }

 private:
  [[nodiscard]] model::Phase PhaseAt(const trace::Event& event, const DeviceState& device) const;
  [[nodiscard]] bool IsCachingAllocator(model::StringId caller);
  void ApplyStep(const trace::Event& event);
  void ApplyMark(const trace::Event& event);
  void ApplyInput(const trace::Event& event);
  void ApplyToDevice(const trace::Event& event, Applied* applied);

  std::shared_ptr<const model::Tables> tables_;
  std::shared_ptr<const model::StackTable> stacks_;
  std::map<uint32_t, DeviceState> devices_;
  std::map<model::StringId, bool> caching_callers_;
  uint64_t current_step_ = 0;
  uint64_t completed_steps_ = 0;
  std::vector<model::Phase> marks_;  // PhaseMarks that have begun and not ended
};

}  // namespace vramtrace::timeline
