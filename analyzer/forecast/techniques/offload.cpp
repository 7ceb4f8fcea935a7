// What waits in host memory: the optimizer's state, or what forward keeps for backward.

#include <algorithm>

#include "analyzer/forecast/techniques/optimizer_edit.h"
#include "analyzer/forecast/techniques/passes.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

// Smaller tensors are not worth their way over the bus. preload/python/techniques/activations.py has the
// same.
constexpr Bytes kLeastOffloaded = 1 << 20;

bool IsStateOnDevice(const Stream& stream) {
  return std::any_of(stream.events.begin(), stream.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kAllocate &&
           stream[event.request].memory_class == MemoryClass::kOptimizerState;
  });
}

class Offload {
 public:
  explicit Offload(const Stream& stream) : stream_(stream), graph_(stream), edit_(stream) {}

  Edited Apply() && {
    uint64_t moved = 0;
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) moved += Move(RequestId{i}) ? 1 : 0;
    if (moved == 0) return "no activation of 1 MiB or more is kept for a backward pass";
    return std::move(edit_).Finish();
  }

 private:
  [[nodiscard]] bool IsKeptByAModule(const Request& request) const {
    const Site& site = stream_.SiteOf(request);
    if (site.phase != Phase::kForward || !site.has_module || request.bytes < kLeastOffloaded) return false;
    return request.memory_class == MemoryClass::kActivation ||
           request.memory_class == MemoryClass::kTemporary || request.is_copy;
  }

  // Where the program's own variables let go of it.
  [[nodiscard]] uint32_t ReleasePlace(RequestId id) const {
    if (!stream_[id].is_copy) return graph_.ReleasePlace(id);
    // Autocast keeps its copies of weights until its region ends.
    const Pass* pass = graph_.PassOf(NodeOf(stream_[id].autograd_number));
    return pass == nullptr ? Span::kOpen : pass->end;
  }

  // The node that reads it last gets a copy for as long as it runs.
  bool Move(RequestId id) {
    const Request& request = stream_[id];
    if (!IsKeptByAModule(request)) return false;
    const GraphNode* reader = graph_.Find(graph_.ReaderOf(id));
    if (reader == nullptr || reader->backward_place == Span::kOpen) return false;
    const uint32_t released = ReleasePlace(id);
    if (released == Span::kOpen) return false;
    const uint32_t freed = edit_.SpanOf(id).freed;
    edit_.FreeAfter(id, released);
    edit_.FreeAfter(edit_.AllocateBefore(reader->backward_place, request), freed);
    return true;
  }

  const Stream& stream_;
  Graph graph_;
  Edit edit_;
};

}  // namespace

bool IsStateOnHost(const Stream& stream) {
  const auto& names = stream.facts.optimizers;
  const bool keeps_state = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find("Adam") != std::string::npos || name == "Lion" || name == "Adafactor";
  });
  return keeps_state && stream.facts.steps > 0 && !IsStateOnDevice(stream);
}

// Gradients go to the host, where a copy of the parameters is updated, and the parameters come back: nothing
// of the step is left on the device.
Edited ApplyOptimizerOffload(const Stream& stream, const TechniqueOptions& /*options*/) {
  OptimizerEdit edit(stream);
  if (edit.places().empty()) return "no optimizer step was completed";
  if (!IsStateOnDevice(stream)) return "the optimizer keeps no state";
  edit.RemoveTemporaries();
  edit.RemoveState();
  return std::move(edit).Finish();
}

// Nothing that backward reads waits on the device.
bool IsOffloaded(const Stream& stream) {
  bool backward = false;
  for (const Event& event : stream.events) {
    backward = backward || event.phase == Phase::kBackward;
    const bool large = event.kind == EventKind::kAllocate && stream[event.request].saved &&
                       stream[event.request].bytes >= kLeastOffloaded &&
                       stream[event.request].memory_class == MemoryClass::kActivation;
    if (large) return false;
  }
  return backward;
}

Edited ApplyActivationOffload(const Stream& stream, const TechniqueOptions& /*options*/) {
  return Offload(stream).Apply();
}

}  // namespace vramtrace::forecast
