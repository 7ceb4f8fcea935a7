#pragma once
// The time that simulated work takes, where a scenario gives the card a clock. Without one all work completes
// at once and this does nothing. Only what has a size that the public interface tells takes time: matrix
// multiplications and copies. Every other kernel still takes none.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

// A scenario gives this device a clock.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool HasClock(int device);
// What the device has worked so far, in nanoseconds.
[[nodiscard]] VRAMTRACE_SIM_EXPORT uint64_t WorkedNanoseconds(int device);

enum class Multiply { kFp32, kTf32, kHalf };
VRAMTRACE_SIM_EXPORT void WorkMultiply(int device, Multiply kind, double operations);

enum class CopyPath { kWithin, kHostLink };
VRAMTRACE_SIM_EXPORT void WorkCopy(int device, CopyPath path, uint64_t bytes);

}  // namespace vramtrace::simulator

// HasClock, looked for by name by who wants to know whether times mean something.
extern "C" VRAMTRACE_SIM_EXPORT int vramtrace_sim_has_clock(int device);
