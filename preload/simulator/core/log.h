#pragma once
// The one voice of the simulator: lines on stderr, "vramtrace: simulator: ...". Logging is off unless
// VRAMTRACE_SIM_LOG is set; what cannot be simulated is said once a function whatever the setting.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

[[nodiscard]] VRAMTRACE_SIM_EXPORT bool Verbose();
VRAMTRACE_SIM_EXPORT void Log(const char* format, ...) __attribute__((format(printf, 1, 2)));
VRAMTRACE_SIM_EXPORT void Warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Counts kernels and library calls whose work is not done, for the report. `library` is a static string.
VRAMTRACE_SIM_EXPORT void CountWork(const char* library, const char* function);

}  // namespace vramtrace::simulator

extern "C" {
// What every refusing stand-in calls: names itself once on stderr and in the report. Both are static strings;
// `library` is the soname. The caller then returns its library's not-supported status.
VRAMTRACE_SIM_EXPORT void vramtrace_sim_unsupported(const char* library, const char* function);
}
