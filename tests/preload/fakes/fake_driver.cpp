// A driver library with the functions that the recorder hooks and those it asks. Only public functions;
// memory is numbers. Two megabytes of context, then what was allocated.

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "tests/preload/fakes/memory_book.h"

#undef cuGetProcAddress

namespace {

constexpr size_t kTotal = size_t{1} << 30;
std::atomic<size_t> g_used{size_t{2} << 20};

template <typename T>
CUresult Give(const char* function, T* out, size_t bytes) {
  errno = EDOM;  // a hook has to leave what the real function left
  if (fake::Fails(function)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = (T)fake::NextAddress(bytes);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

#define GIVE(name, type, ...) FAKE_EXPORT CUresult name(type* out, __VA_ARGS__)

GIVE(cuMemAlloc_v2, CUdeviceptr, size_t bytes) {
  const CUresult result = Give("cuMemAlloc_v2", out, bytes);
  if (result == CUDA_SUCCESS) g_used += bytes;
  return result;
}
FAKE_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                        unsigned int) {
  *pitch = (width + 511) / 512 * 512;
  return Give("cuMemAllocPitch_v2", out, *pitch * height);
}
GIVE(cuMemAllocManaged, CUdeviceptr, size_t bytes, unsigned int) {
  return Give("cuMemAllocManaged", out, bytes);
}
GIVE(cuMemAllocAsync, CUdeviceptr, size_t bytes, CUstream) { return Give("cuMemAllocAsync", out, bytes); }
GIVE(cuMemAllocAsync_ptsz, CUdeviceptr, size_t bytes, CUstream) {
  return Give("cuMemAllocAsync_ptsz", out, bytes);
}
GIVE(cuMemAllocFromPoolAsync, CUdeviceptr, size_t bytes, CUmemoryPool, CUstream) {
  return Give("cuMemAllocFromPoolAsync", out, bytes);
}
GIVE(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr, size_t bytes, CUmemoryPool, CUstream) {
  return Give("cuMemAllocFromPoolAsync_ptsz", out, bytes);
}
GIVE(cuMemCreate, CUmemGenericAllocationHandle, size_t bytes, const CUmemAllocationProp*,
     unsigned long long) {
  return Give("cuMemCreate", out, bytes);
}
GIVE(cuIpcOpenMemHandle_v2, CUdeviceptr, CUipcMemHandle, unsigned int) {
  return Give("cuIpcOpenMemHandle_v2", out, 4096);
}
GIVE(cuArrayCreate_v2, CUarray, const CUDA_ARRAY_DESCRIPTOR*) { return Give("cuArrayCreate_v2", out, 4096); }
GIVE(cuArray3DCreate_v2, CUarray, const CUDA_ARRAY3D_DESCRIPTOR*) {
  return Give("cuArray3DCreate_v2", out, 4096);
}
GIVE(cuMipmappedArrayCreate, CUmipmappedArray, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned int) {
  return Give("cuMipmappedArrayCreate", out, 4096);
}
GIVE(cuExternalMemoryGetMappedBuffer, CUdeviceptr, CUexternalMemory,
     const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
  return Give("cuExternalMemoryGetMappedBuffer", out, description->size);
}
GIVE(cuMemPoolImportPointer, CUdeviceptr, CUmemoryPool, CUmemPoolPtrExportData*) {
  return Give("cuMemPoolImportPointer", out, 4096);
}
GIVE(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle, void*, CUmemAllocationHandleType) {
  return Give("cuMemImportFromShareableHandle", out, 4096);
}
FAKE_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode*, CUgraph, const CUgraphNode*, size_t,
                                            CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return Give("cuGraphAddMemAllocNode", &parameters->dptr, parameters->bytesize);
}
GIVE(cuMemAllocHost_v2, void*, size_t bytes) { return Give("cuMemAllocHost_v2", out, bytes); }
GIVE(cuMemHostAlloc, void*, size_t bytes, unsigned int) { return Give("cuMemHostAlloc", out, bytes); }

#define TAKE(name, ...) \
  FAKE_EXPORT CUresult name(__VA_ARGS__) { return CUDA_SUCCESS; }

TAKE(cuMemFree_v2, CUdeviceptr)
TAKE(cuMemFreeAsync, CUdeviceptr, CUstream)
TAKE(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream)
TAKE(cuMemRelease, CUmemGenericAllocationHandle)
TAKE(cuIpcCloseMemHandle, CUdeviceptr)
TAKE(cuArrayDestroy, CUarray)
TAKE(cuMipmappedArrayDestroy, CUmipmappedArray)
TAKE(cuGraphAddMemFreeNode, CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUdeviceptr)
TAKE(cuMemPoolTrimTo, CUmemoryPool, size_t)
TAKE(cuMemPoolDestroy, CUmemoryPool)
TAKE(cuDeviceGraphMemTrim, CUdevice)
TAKE(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)
TAKE(cuMemUnmap, CUdeviceptr, size_t)
TAKE(cuMemHostRegister_v2, void*, size_t, unsigned int)
TAKE(cuMemFreeHost, void*)
TAKE(cuMemHostUnregister, void*)

FAKE_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = kTotal;
  *free_bytes = kTotal - g_used;
  return CUDA_SUCCESS;
}

// As the real driver: asked for a base name it answers with the address of its own newest exported variant,
// or of the one for the per-thread default stream. Names with a suffix are not known.
static CUresult Find(const char* symbol, void** function, cuuint64_t flags) {
  *function = nullptr;
  const std::string base = symbol;
  if (base.ends_with("_v2") || base.ends_with("_ptsz")) return CUDA_ERROR_NOT_FOUND;
  // Its own names in its own table: what stands in front of them is none of its business.
  static void* const self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const std::string names[] = {per_thread ? base + "_ptsz" : base + "_v2", per_thread ? base + "_v2" : base,
                               base};
  for (const std::string& name : names) {
    *function = dlsym(self, name.c_str());
    if (*function != nullptr) return CUDA_SUCCESS;
  }
  (void)dlerror();
  return CUDA_ERROR_NOT_FOUND;
}

// What the driver does of CUDA_INJECTION64_PATH in cuInit: opens the library, calls it, and goes on whatever
// it answers.
FAKE_EXPORT CUresult cuInit(unsigned int) {
  static const bool once = [] {
    const char* const path = std::getenv("CUDA_INJECTION64_PATH");
    void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* const entry = library == nullptr ? nullptr : dlsym(library, "InitializeInjection");
    if (entry != nullptr) (void)reinterpret_cast<int (*)()>(entry)();
    return true;
  }();
  return once ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

FAKE_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int, cuuint64_t flags) {
  return Find(symbol, function, flags);
}
FAKE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult*) {
  return Find(symbol, function, flags);
}

FAKE_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(0x1234);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 8;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = 13020;
  return CUDA_SUCCESS;
}

}  // extern "C"
