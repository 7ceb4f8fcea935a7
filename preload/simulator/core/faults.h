#pragma once
// VRAMTRACE_SIM_FAIL=KIND:N[,KIND:N...] makes the N-th call of a kind fail (from 1; `N+`: it and all later
// ones). The kinds are the rows of kCallKinds in faults.cpp.

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

enum class CallKind : int { kAllocate, kHostAllocate, kCopy, kLaunch, kPhysical, kMap, kContext, kCount };

// Counts a call of this kind; true when it has been told to fail. An allocation then fails as out of memory,
// a copy or launch as kInjected.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool ShouldFail(CallKind kind);

}  // namespace vramtrace::simulator
