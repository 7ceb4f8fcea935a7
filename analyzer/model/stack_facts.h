#pragma once
// What a stack tells about an event, worked out once a stack: rules are in frame_rules.def.

#include <cstdint>
#include <vector>

#include "analyzer/model/phase.h"
#include "analyzer/model/tables.h"
#include "analyzer/trace/event.h"

namespace vramtrace::model {

enum class FrameHint : uint8_t { kNone, kOptimizer, kZeroGrad, kClip, kRecompute, kSave, kLoad, kEvaluate };

struct StackFacts {
  FrameHint hint = FrameHint::kNone;  // of the innermost frame that has one
  uint64_t module_object = 0;         // innermost nn.Module being called; 0: none
  bool in_backward_call = false;      // under Tensor.backward or torch.autograd.backward
  bool in_module_apply = false;       // under nn.Module._apply: .to(), .cuda(), .half()
  bool in_optimizer_init = false;     // under an optimizer's _init_group: states are made here
  bool in_constructor = false;        // under an object's __init__
  bool in_collective = false;         // under torch.distributed
  bool makes_buckets = false;         // innermost where DistributedDataParallel rebuilds its buckets
  FrameId innermost{};                // Python frame
  FrameId site{};    // innermost Python frame outside of torch and the standard library: a model's own line
  FrameId script{};  // innermost Python frame outside of installed packages: the user's own line
};

class StackTable {
 public:
  explicit StackTable(const Tables& tables);
  [[nodiscard]] const StackFacts& operator[](StackId id) const {
    const uint32_t raw = trace::Raw(id);
    return raw < facts_.size() ? facts_[raw] : facts_[0];
  }

 private:
  std::vector<StackFacts> facts_;
};

// The phase of an event from its frames and the autograd position. `seen_forward`: an nn.Module has been
// called before on this device; without one, what is not a forward itself is loading.
[[nodiscard]] Phase PhaseOf(const StackFacts& facts, const trace::AutogradPosition& autograd,
                            bool seen_forward);

// The Python frame is torch's or the standard library's: it says nothing of the program.
[[nodiscard]] bool IsTorchOrStandard(const Tables& tables, FrameId frame);

// "model.py:31 (MLP.forward)": the file's last two parts, the line, the qualified name. Empty for kNone.
[[nodiscard]] std::string FrameText(const Tables& tables, FrameId frame);

}  // namespace vramtrace::model
