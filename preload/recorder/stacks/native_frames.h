#pragma once
// Native frames of the calling thread, by libunwind opened with RTLD_LOCAL (as an ordinary dependency it
// would take over the process's C++ exceptions). Missing at run time means Python frames only.

namespace vramtrace::stacks {

inline constexpr int kMaxNativeFrames = 64;

// Opens libunwind, once; says in the trace whether native frames are on. Called before the first event is
// recorded, outside of any lock of the program's that the recorder knows of.
void PrepareNativeFrames() noexcept;

// Fills `pcs` with return addresses, innermost first, own frames skipped; returns how many.
int CaptureNativeFrames(void** pcs, int capacity) noexcept;

}  // namespace vramtrace::stacks
