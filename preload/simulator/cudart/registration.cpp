// What nvcc's generated host code calls (crt/host_runtime.h) before main and at each <<<>>>. Importing
// PyTorch registers 477 binaries, 24,000 kernels and 18,000 variables: nothing is parsed here.
#include <cstdlib>
#include <mutex>
#include <vector>

#include "preload/simulator/core/kernels.h"
#include "preload/simulator/cudart/runtime.h"
#include "preload/simulator/cudart/symbols.h"

using namespace vramtrace::simulator;

namespace {

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<CallConfiguration> configurations;

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* binary) {
  RuntimeInUse(CUDART_VERSION);
  return new void* {binary};
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** handle) { delete handle; }

char __cudaInitModule(void** /*handle*/) { return 0; }

void __cudaRegisterFunction(void** /*handle*/, const char* host, char* /*device_stub*/, const char* name,
                            int /*thread_limit*/, uint3* /*thread_id*/, uint3* /*block_id*/, dim3* /*block*/,
                            dim3* /*grid*/, int* /*warp_size*/) {
  RegisterKernel(host, name);
}

void __cudaRegisterVar(void** /*handle*/, char* host, char* /*device_address*/, const char* name,
                       int /*external*/, size_t bytes, int /*constant*/, int /*global*/) {
  runtime::RegisterSymbol(host, name, bytes);
}

// The host dereferences a managed variable at any time after this, so it needs memory now.
void __cudaRegisterManagedVar(void** /*handle*/, void** host, char* /*device_address*/, const char* name,
                              int /*external*/, size_t bytes, int /*constant*/, int /*global*/) {
  if (*host == nullptr) *host = std::calloc(1, bytes);
  runtime::RegisterSymbol(host, name, bytes);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return runtime::Fail(cudaErrorMissingConfiguration);
  const CallConfiguration& last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t /*shared*/, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, 0, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t /*shared*/, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, 0, stream);
}

}  // extern "C"
