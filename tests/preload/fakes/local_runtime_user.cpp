// A plugin that depends on a CUDA runtime of its own: opened with RTLD_LOCAL, neither is in the global scope.

#include <cuda_runtime_api.h>

#include "tests/preload/fakes/memory_book.h"

extern "C" FAKE_EXPORT int AllocateThroughMyRuntime() {
  void* pointer = nullptr;
  if (cudaMalloc(&pointer, 4096) != cudaSuccess) return 1;
  return cudaFree(pointer) == cudaSuccess ? 0 : 2;
}
