#pragma once
// Prototypes of the hooked functions: NVIDIA's headers where they have one, else the ABI as cudaTypedefs.h
// and PyTorch's headers give it.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#define VRAMTRACE_EXPORT __attribute__((visibility("default")))

// c10::Device: two bytes, passed by value in one register. Type 1 is CUDA, 20 is HIP (c10/core/DeviceType.h).
struct TorchDevice {
  int8_t type;
  int8_t index;
};

extern "C" {

cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned int version,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status);

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);
CUresult cuGetProcAddress_v1(const char* symbol, void** function, int version,
                             cuuint64_t flags) __asm__("cuGetProcAddress");

void ReportMemoryUsage(void* address, int64_t bytes, size_t allocated, size_t reserved,
                       TorchDevice device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void ReportMemoryUsageSigned(
    void* address, int64_t bytes, int64_t allocated, int64_t reserved,
    TorchDevice device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE");
void ReportMemoryUsageShort(void* block, int64_t bytes, TorchDevice device) __asm__(
    "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE");
void ReportOutOfMemory(int64_t bytes, size_t allocated, size_t reserved,
                       TorchDevice device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
void ReportOutOfMemorySigned(int64_t bytes, int64_t allocated, int64_t reserved, TorchDevice device) __asm__(
    "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE");
void ReportOutOfMemoryUnsigned(size_t bytes, size_t allocated, size_t reserved, TorchDevice device) __asm__(
    "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE");

}  // extern "C"
