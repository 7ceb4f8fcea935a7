#pragma once
// The workspace of an execution plan. Which engine cuDNN picks, and so how much it wants, is known only to
// cuDNN; PyTorch allocates it for the length of the call. Modelled as a constant: 0, the lower end, unless
// VRAMTRACE_SIM_CUDNN_WORKSPACE gives a size. Published measurements of one FP32 convolution lie at 8.5 MB
// (Ampere), 16.9 MB (Blackwell) and 51.5 MB (H100): README.md, What is modelled.

#include <cstdint>

#include "preload/simulator/core/options.h"

namespace vramtrace::simulator::cudnn {

[[nodiscard]] inline int64_t PlanWorkspaceBytes() {
  return static_cast<int64_t>(CurrentOptions().cudnn_workspace_bytes);
}

}  // namespace vramtrace::simulator::cudnn
