// A CUDA runtime of another major, in the global scope of a program that is not linked to it: whoever reaches
// it sees it fail.

#include <cuda_runtime_api.h>

#include "tests/preload/fakes/memory_book.h"

extern "C" {

FAKE_EXPORT cudaError_t cudaMalloc(void**, size_t) { return cudaErrorInsufficientDriver; }
FAKE_EXPORT cudaError_t cudaFree(void*) { return cudaErrorInsufficientDriver; }
FAKE_EXPORT cudaError_t cudaMemGetInfo(size_t*, size_t*) { return cudaErrorInsufficientDriver; }

}  // extern "C"
