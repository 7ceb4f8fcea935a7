#pragma once
// Where the autograd engine is on the calling thread, read from PyTorch's own memory.
//
// at::sequence_number::peek() and at::RecordFunction::currentThreadId() are exported and called. The running
// node is not asked for by torch::autograd::get_current_node(): that takes a reference and may need the GIL.
// Instead its accessor is decoded from that function's first instructions (x86-64), and the node's fields are
// read by a row of kNodeLayouts. Which row fits is decided at run time by comparing with what Python says of
// one tiny graph on the CPU (VerifyNodeLayout).

#include <cstdint>

#include "preload/recorder/record/recorder.h"

namespace vramtrace::hooks {

// Looks PyTorch's symbols up, once it is loaded. Called by preload/python after `import torch`.
void FindAutograd() noexcept;

// `nodes[i]` is a torch::autograd::Node, `sequence_numbers[i]` what Python calls its _sequence_nr(),
// `operator_names[i]` its name(). True: the position is read from now on.
bool VerifyNodeLayout(const void* const* nodes, const uint64_t* sequence_numbers,
                      const char* const* operator_names, int count) noexcept;

// Zero when off.
[[nodiscard]] record::AutogradPosition ReadAutogradPosition() noexcept;

// c10::GradMode::is_enabled() of this thread; true when it cannot be told.
[[nodiscard]] bool GradModeEnabled() noexcept;

}  // namespace vramtrace::hooks
