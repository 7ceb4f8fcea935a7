#pragma once
// What the files of the simulated driver share.

#include <cuda.h>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/errors.h"

namespace vramtrace::simulator::driver {

inline CUresult Result(Status status) { return static_cast<CUresult>(ErrorCode(status)); }
inline void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// A context handle. The primary one of each device is shared with the runtime.
struct Context {
  int device = 0;
  bool primary = true;
};
[[nodiscard]] CUcontext PrimaryContext(int device);
[[nodiscard]] Context* FindContext(CUcontext handle);  // nullptr when it is none

}  // namespace vramtrace::simulator::driver
