// Launches do nothing but count and apply the value rules; host functions run at once, because all work
// before them is done.
#include <cuda.h>

#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/kernels.h"
#include "preload/simulator/cudart/runtime.h"
#include "preload/simulator/cudart/value_rules.h"

using namespace vramtrace::simulator;
using runtime::Result;

namespace {

// While a stream captures, a host function belongs to the graph and does not run.
template <class Run>
cudaError_t RunOnStream(cudaStream_t handle, Run run) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  if (stream->capture != nullptr) {
    CaptureWork(stream, CU_GRAPH_NODE_TYPE_HOST);
  } else {
    run();
  }
  return cudaSuccess;
}

cudaError_t LaunchOn(const void* kernel, void** arguments, void* stream) {
  const Status status = Launch(kernel, stream);
  if (status == Status::kOk) runtime::ApplyValueRule(kernel, arguments);
  return Result(status);
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* kernel, dim3 /*grid*/, dim3 /*block*/, void** arguments,
                             size_t /*shared*/, cudaStream_t stream) {
  return LaunchOn(kernel, arguments, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* kernel,
                                void** arguments) {
  return LaunchOn(kernel, arguments, configuration->stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 /*grid*/, dim3 /*block*/, void** arguments,
                                        size_t /*shared*/, cudaStream_t stream) {
  return LaunchOn(kernel, arguments, stream);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return RunOnStream(stream, [&] { function(data); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned /*flags*/) {
  return RunOnStream(stream, [&] { callback(stream, cudaSuccess, data); });
}

}  // extern "C"
