#pragma once
// Texts of CUDA's error codes. Runtime and driver share numbers and texts; names differ and come from the
// headers each library is built against.

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

// What the API prints for a code; for one without a text here, `name` (cudaErrorFooBar, CUDA_ERROR_FOO_BAR)
// in words. The result lives as long as the process.
[[nodiscard]] VRAMTRACE_SIM_EXPORT const char* ErrorText(int code, const char* name);

// The code of a status: the runtime's and the driver's numbers agree.
[[nodiscard]] VRAMTRACE_SIM_EXPORT int ErrorCode(Status status);

}  // namespace vramtrace::simulator
