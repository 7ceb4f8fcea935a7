// A runtime library on top of the fake driver: cudaMalloc calls cuMemAlloc_v2 through the dynamic linker, so
// that one allocation crosses two hooks.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cerrno>

#include "tests/preload/fakes/memory_book.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

cudaError_t Convert(CUresult result) { return static_cast<cudaError_t>(result); }

template <typename T>
cudaError_t Give(const char* function, T* out, size_t bytes) {
  errno = EDOM;
  if (fake::Fails(function)) return cudaErrorMemoryAllocation;
  *out = reinterpret_cast<T>(fake::NextAddress(bytes));
  return cudaSuccess;
}

}  // namespace

extern "C" {

FAKE_EXPORT cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (fake::Fails("cudaMalloc")) return cudaErrorMemoryAllocation;
  return Convert(cuMemAlloc_v2(reinterpret_cast<CUdeviceptr*>(pointer), bytes));
}
FAKE_EXPORT cudaError_t cudaFree(void* pointer) {
  return Convert(cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pointer)));
}

FAKE_EXPORT cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int) {
  return Give("cudaMallocManaged", pointer, bytes);
}
FAKE_EXPORT cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return Give("cudaMallocPitch", pointer, *pitch * height);
}
FAKE_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  pitched->pitch = (extent.width + 511) / 512 * 512;
  return Give("cudaMalloc3D", &pitched->ptr, pitched->pitch * extent.height * extent.depth);
}
FAKE_EXPORT cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc*, size_t, size_t,
                                        unsigned int) {
  return Give("cudaMallocArray", array, 4096);
}
FAKE_EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc*, cudaExtent,
                                          unsigned int) {
  return Give("cudaMalloc3DArray", array, 4096);
}
FAKE_EXPORT cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  return Give("cudaMallocAsync", pointer, bytes);
}
FAKE_EXPORT cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t) {
  return Give("cudaMallocAsync_ptsz", pointer, bytes);
}
FAKE_EXPORT cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return Give("cudaMallocFromPoolAsync", pointer, bytes);
}
FAKE_EXPORT cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t,
                                                     cudaStream_t) {
  return Give("cudaMallocFromPoolAsync_ptsz", pointer, bytes);
}
FAKE_EXPORT cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t, unsigned int) {
  return Give("cudaIpcOpenMemHandle", pointer, 4096);
}
FAKE_EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc*,
                                                 cudaExtent, unsigned int, unsigned int) {
  return Give("cudaMallocMipmappedArray", array, 4096);
}
FAKE_EXPORT cudaError_t cudaExternalMemoryGetMappedBuffer(void** pointer, cudaExternalMemory_t,
                                                          const cudaExternalMemoryBufferDesc* description) {
  return Give("cudaExternalMemoryGetMappedBuffer", pointer, description->size);
}
FAKE_EXPORT cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t, cudaMemPoolPtrExportData*) {
  return Give("cudaMemPoolImportPointer", pointer, 4096);
}
FAKE_EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                                                 size_t, cudaMemAllocNodeParams* parameters) {
  return Give("cudaGraphAddMemAllocNode", &parameters->dptr, parameters->bytesize);
}
FAKE_EXPORT cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return Give("cudaMallocHost", pointer, bytes);
}
FAKE_EXPORT cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int) {
  return Give("cudaHostAlloc", pointer, bytes);
}

#define TAKE(name, ...) \
  FAKE_EXPORT cudaError_t name(__VA_ARGS__) { return cudaSuccess; }

TAKE(cudaFreeArray, cudaArray_t)
TAKE(cudaFreeMipmappedArray, cudaMipmappedArray_t)
TAKE(cudaGraphAddMemFreeNode, cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, void*)
TAKE(cudaFreeAsync, void*, cudaStream_t)
TAKE(cudaFreeAsync_ptsz, void*, cudaStream_t)
TAKE(cudaIpcCloseMemHandle, void*)
FAKE_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return Convert(cuMemPoolTrimTo(pool, bytes));  // through the recorder again: one query
}
TAKE(cudaMemPoolDestroy, cudaMemPool_t)
TAKE(cudaDeviceGraphMemTrim, int)
TAKE(cudaHostRegister, void*, size_t, unsigned int)
TAKE(cudaFreeHost, void*)
TAKE(cudaHostUnregister, void*)
TAKE(cudaPeekAtLastError)
TAKE(cudaGetLastError)
TAKE(cudaThreadExchangeStreamCaptureMode, cudaStreamCaptureMode*)

FAKE_EXPORT cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return Convert(cuMemGetInfo_v2(free_bytes, total_bytes));
}
FAKE_EXPORT cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
FAKE_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}

FAKE_EXPORT cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                                cudaDriverEntryPointQueryResult* status) {
  return Convert(cuGetProcAddress_v2(symbol, function, 13020, flags,
                                     reinterpret_cast<CUdriverProcAddressQueryResult*>(status)));
}
FAKE_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                                     unsigned long long flags,
                                                     cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPoint(symbol, function, flags, status);
}
FAKE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                                         unsigned long long flags,
                                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPoint(symbol, function, flags, status);
}
FAKE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                              unsigned int, unsigned long long flags,
                                                              cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPoint(symbol, function, flags, status);
}

}  // extern "C"
