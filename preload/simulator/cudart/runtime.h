#pragma once
// What the files of the simulated runtime share: the last error of the thread, translation of statuses, and
// the differences between the CUDA 12 and 13 headers. Everything else is the same source for both.

#include <cuda_runtime_api.h>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/errors.h"
#include "preload/simulator/core/streams.h"

namespace vramtrace::simulator::runtime {

inline constexpr bool kCuda13 = CUDART_VERSION >= 13000;

// Remembers a failure for cudaGetLastError.
cudaError_t Fail(cudaError_t error);
inline cudaError_t Result(Status status) {
  return status == Status::kOk ? cudaSuccess : Fail(static_cast<cudaError_t>(ErrorCode(status)));
}

// CUDA 13 says a location where 12 has a device number.
#if CUDART_VERSION >= 13000
using Place = cudaMemLocation;
#else
using Place = int;
#endif

}  // namespace vramtrace::simulator::runtime
