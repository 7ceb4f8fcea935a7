#pragma once
// The phase of an event: what the program was doing.

#include <cstdint>
#include <string_view>

namespace vramtrace::model {

enum class Phase : uint8_t {
  kLoad,       // before the first forward
  kForward,    // inside an nn.Module's call
  kBackward,   // the autograd engine runs a node
  kRecompute,  // backward runs a checkpointed forward again
  kOptimizer,  // inside Optimizer.step
  kZeroGrad,
  kClip,      // inside clip_grad_norm_ or clip_grad_value_
  kEvaluate,  // a forward under a frame that evaluates
  kSave,      // a checkpoint is written
  kScript,    // none of these: the program's own code between them
};

// The word that reports use: "backward (recompute)".
[[nodiscard]] std::string_view PhaseName(Phase phase);

}  // namespace vramtrace::model
