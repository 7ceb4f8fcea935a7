#include "preload/simulator/core/errors.h"

#include "preload/simulator/cudart/runtime.h"

namespace vramtrace::simulator::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t Fail(cudaError_t error) {
  last_error = error;
  return error;
}

}  // namespace vramtrace::simulator::runtime

using namespace vramtrace::simulator;

extern "C" {

cudaError_t cudaGetLastError() {
  cudaError_t error = runtime::last_error;
  runtime::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return runtime::last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define X(name) \
  case name:    \
    return #name;
#include "cudart_error_names.inc"
#undef X
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  return ErrorText(static_cast<int>(error), cudaGetErrorName(error));
}

}  // extern "C"
