#pragma once
// The same measurements without PyTorch: CUDA's runtime and cuBLAS, opened by name. Made to run in a process
// of its own, because a driver that hangs must not hang the command.

namespace vramtrace::doctor {

// Prints the probe's lines on stdout until done or `seconds` are over. What a probe of a missing library says
// is one line "missing".
void RunNativeProbe(double seconds);

}  // namespace vramtrace::doctor
