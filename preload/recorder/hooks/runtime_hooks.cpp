// The CUDA runtime's functions. A body says three things: which real function, what the event is, and where
// address and bytes are found afterwards. Without a CUDA runtime in the process each answers "no device", as
// the runtime itself does on a machine without a GPU.

#include "preload/recorder/hooks/declarations.h"
#include "preload/recorder/hooks/device_facts.h"
#include "preload/recorder/hooks/driver_events.h"
#include "preload/recorder/hooks/entry_points.h"
#include "preload/recorder/hooks/real_functions.h"

using vramtrace::hooks::Allocated;
using vramtrace::hooks::CallScope;
using vramtrace::hooks::Hook;
using vramtrace::hooks::KeepErrno;
using vramtrace::hooks::RealOf;
using vramtrace::hooks::RecordAllocation;
using vramtrace::hooks::RecordFree;
using vramtrace::hooks::RecordTrim;
using vramtrace::hooks::Space;
using vramtrace::record::MemoryKind;

// Looks the real function up as `real`, or returns.
#define VRAMTRACE_REAL(name)                              \
  const void* const caller = __builtin_return_address(0); \
  const auto real = RealOf(Hook::name, &name, caller);    \
  if (real == nullptr) return cudaErrorNoDevice

namespace {

template <typename T>
uint64_t AddressOf(T pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

// Address and bytes of a call that stores a pointer in `*out`.
template <typename T>
auto Stored(T* const* out, uint64_t bytes) {
  return [out, bytes](bool succeeded) { return Allocated{succeeded ? AddressOf(*out) : 0, bytes}; };
}

uint64_t StreamOf(cudaStream_t stream) { return AddressOf(stream); }

// Bytes of an array from its description. CUDA does not tell what an array really takes: a lower bound.
uint64_t ArrayBytes(const cudaChannelFormatDesc* description, uint64_t width, uint64_t height,
                    uint64_t depth) {
  if (description == nullptr) return 0;
  const uint64_t bits =
      static_cast<uint64_t>(description->x) + description->y + description->z + description->w;
  return width * (height == 0 ? 1 : height) * (depth == 0 ? 1 : depth) * bits / 8;
}

// Every level is half as wide, high and deep as the one before.
uint64_t MipmappedBytes(const cudaChannelFormatDesc* description, const cudaExtent& extent,
                        unsigned int levels) {
  uint64_t bytes = 0;
  const auto halved = [](uint64_t side, unsigned int level) {
    return side == 0 || side >> level > 0 ? side >> level : 1;
  };
  for (unsigned int level = 0; level < levels && level < 32; ++level) {
    bytes += ArrayBytes(description, halved(extent.width, level), halved(extent.height, level),
                        halved(extent.depth, level));
  }
  return bytes;
}

}  // namespace

extern "C" {

VRAMTRACE_EXPORT cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  VRAMTRACE_REAL(cudaMalloc);
  return RecordAllocation(
      {.hook = Hook::cudaMalloc, .caller = caller}, [&] { return real(pointer, bytes); },
      Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  VRAMTRACE_REAL(cudaMallocManaged);
  return RecordAllocation(
      {.hook = Hook::cudaMallocManaged, .caller = caller, .kind = MemoryKind::kManaged},
      [&] { return real(pointer, bytes, flags); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  VRAMTRACE_REAL(cudaMallocPitch);
  return RecordAllocation(
      {.hook = Hook::cudaMallocPitch, .caller = caller}, [&] { return real(pointer, pitch, width, height); },
      [&](bool succeeded) {
        return succeeded ? Allocated{AddressOf(*pointer), *pitch * height} : Allocated{0, width * height};
      });
}

VRAMTRACE_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  VRAMTRACE_REAL(cudaMalloc3D);
  const uint64_t rows = static_cast<uint64_t>(extent.height) * extent.depth;
  return RecordAllocation(
      {.hook = Hook::cudaMalloc3D, .caller = caller}, [&] { return real(pitched, extent); },
      [&](bool succeeded) {
        return succeeded ? Allocated{AddressOf(pitched->ptr), pitched->pitch * rows}
                         : Allocated{0, extent.width * rows};
      });
}

VRAMTRACE_EXPORT cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* description,
                                             size_t width, size_t height, unsigned int flags) {
  VRAMTRACE_REAL(cudaMallocArray);
  return RecordAllocation(
      {.hook = Hook::cudaMallocArray, .caller = caller, .kind = MemoryKind::kArray},
      [&] { return real(array, description, width, height, flags); },
      Stored(array, ArrayBytes(description, width, height, 1)));
}

VRAMTRACE_EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* description,
                                               cudaExtent extent, unsigned int flags) {
  VRAMTRACE_REAL(cudaMalloc3DArray);
  return RecordAllocation(
      {.hook = Hook::cudaMalloc3DArray, .caller = caller, .kind = MemoryKind::kArray},
      [&] { return real(array, description, extent, flags); },
      Stored(array, ArrayBytes(description, extent.width, extent.height, extent.depth)));
}

VRAMTRACE_EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                                      const cudaChannelFormatDesc* description,
                                                      cudaExtent extent, unsigned int levels,
                                                      unsigned int flags) {
  VRAMTRACE_REAL(cudaMallocMipmappedArray);
  return RecordAllocation(
      {.hook = Hook::cudaMallocMipmappedArray, .caller = caller, .kind = MemoryKind::kArray},
      [&] { return real(array, description, extent, levels, flags); },
      Stored(array, MipmappedBytes(description, extent, levels)));
}

// Another API's memory (Vulkan, Direct3D) made visible: its owner counts it. The pointer goes by cudaFree.
VRAMTRACE_EXPORT cudaError_t cudaExternalMemoryGetMappedBuffer(
    void** pointer, cudaExternalMemory_t memory, const cudaExternalMemoryBufferDesc* description) {
  VRAMTRACE_REAL(cudaExternalMemoryGetMappedBuffer);
  return RecordAllocation(
      {.hook = Hook::cudaExternalMemoryGetMappedBuffer, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(pointer, memory, description); },
      Stored(pointer, description == nullptr ? 0 : description->size));
}

VRAMTRACE_EXPORT cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                                      cudaMemPoolPtrExportData* data) {
  VRAMTRACE_REAL(cudaMemPoolImportPointer);
  return RecordAllocation(
      {.hook = Hook::cudaMemPoolImportPointer, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(pointer, pool, data); }, Stored(pointer, 0));
}

// The address is fixed now; memory comes when the graph is launched, from the device's graph pool, where
// graphs share it: the device's own answers count it.
VRAMTRACE_EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                      const cudaGraphNode_t* dependencies, size_t count,
                                                      cudaMemAllocNodeParams* parameters) {
  VRAMTRACE_REAL(cudaGraphAddMemAllocNode);
  return RecordAllocation(
      {.hook = Hook::cudaGraphAddMemAllocNode, .caller = caller, .kind = MemoryKind::kGraph},
      [&] { return real(node, graph, dependencies, count, parameters); },
      [&](bool succeeded) {
        return Allocated{succeeded ? AddressOf(parameters->dptr) : 0,
                         parameters == nullptr ? 0 : parameters->bytesize};
      });
}

VRAMTRACE_EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies, size_t count,
                                                     void* pointer) {
  VRAMTRACE_REAL(cudaGraphAddMemFreeNode);
  return RecordFree({.hook = Hook::cudaGraphAddMemFreeNode, .caller = caller, .kind = MemoryKind::kGraph},
                    AddressOf(pointer), [&] { return real(node, graph, dependencies, count, pointer); });
}

VRAMTRACE_EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  VRAMTRACE_REAL(cudaFreeMipmappedArray);
  return RecordFree({.hook = Hook::cudaFreeMipmappedArray, .caller = caller, .kind = MemoryKind::kArray},
                    AddressOf(array), [&] { return real(array); });
}

VRAMTRACE_EXPORT cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  VRAMTRACE_REAL(cudaMallocAsync);
  return RecordAllocation(
      {.hook = Hook::cudaMallocAsync,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = StreamOf(stream)},
      [&] { return real(pointer, bytes, stream); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
  VRAMTRACE_REAL(cudaMallocAsync_ptsz);
  return RecordAllocation(
      {.hook = Hook::cudaMallocAsync_ptsz,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = StreamOf(stream)},
      [&] { return real(pointer, bytes, stream); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                                     cudaStream_t stream) {
  VRAMTRACE_REAL(cudaMallocFromPoolAsync);
  return RecordAllocation(
      {.hook = Hook::cudaMallocFromPoolAsync,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = StreamOf(stream)},
      [&] { return real(pointer, bytes, pool, stream); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                                          cudaStream_t stream) {
  VRAMTRACE_REAL(cudaMallocFromPoolAsync_ptsz);
  return RecordAllocation(
      {.hook = Hook::cudaMallocFromPoolAsync_ptsz,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = StreamOf(stream)},
      [&] { return real(pointer, bytes, pool, stream); }, Stored(pointer, bytes));
}

// The exporter's memory: listed, never part of this process's own. Its size is not told here.
VRAMTRACE_EXPORT cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle,
                                                  unsigned int flags) {
  VRAMTRACE_REAL(cudaIpcOpenMemHandle);
  return RecordAllocation(
      {.hook = Hook::cudaIpcOpenMemHandle, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(pointer, handle, flags); }, Stored(pointer, 0));
}

VRAMTRACE_EXPORT cudaError_t cudaFree(void* pointer) {
  VRAMTRACE_REAL(cudaFree);
  return RecordFree({.hook = Hook::cudaFree, .caller = caller}, AddressOf(pointer),
                    [&] { return real(pointer); });
}

VRAMTRACE_EXPORT cudaError_t cudaFreeArray(cudaArray_t array) {
  VRAMTRACE_REAL(cudaFreeArray);
  return RecordFree({.hook = Hook::cudaFreeArray, .caller = caller, .kind = MemoryKind::kArray},
                    AddressOf(array), [&] { return real(array); });
}

VRAMTRACE_EXPORT cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  VRAMTRACE_REAL(cudaFreeAsync);
  return RecordFree(
      {.hook = Hook::cudaFreeAsync, .caller = caller, .kind = MemoryKind::kPool, .stream = StreamOf(stream)},
      AddressOf(pointer), [&] { return real(pointer, stream); });
}

VRAMTRACE_EXPORT cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  VRAMTRACE_REAL(cudaFreeAsync_ptsz);
  return RecordFree({.hook = Hook::cudaFreeAsync_ptsz,
                     .caller = caller,
                     .kind = MemoryKind::kPool,
                     .stream = StreamOf(stream)},
                    AddressOf(pointer), [&] { return real(pointer, stream); });
}

VRAMTRACE_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
  VRAMTRACE_REAL(cudaMemPoolTrimTo);
  return RecordTrim({.hook = Hook::cudaMemPoolTrimTo, .caller = caller, .kind = MemoryKind::kPool},
                    [&] { return real(pool, bytes_to_keep); });
}

VRAMTRACE_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  VRAMTRACE_REAL(cudaMemPoolDestroy);
  return RecordTrim({.hook = Hook::cudaMemPoolDestroy, .caller = caller, .kind = MemoryKind::kPool},
                    [&] { return real(pool); });
}

VRAMTRACE_EXPORT cudaError_t cudaDeviceGraphMemTrim(int device) {
  VRAMTRACE_REAL(cudaDeviceGraphMemTrim);
  return RecordTrim({.hook = Hook::cudaDeviceGraphMemTrim, .caller = caller, .kind = MemoryKind::kPool},
                    [&] { return real(device); });
}

VRAMTRACE_EXPORT cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  VRAMTRACE_REAL(cudaIpcCloseMemHandle);
  return RecordFree({.hook = Hook::cudaIpcCloseMemHandle, .caller = caller, .kind = MemoryKind::kImported},
                    AddressOf(pointer), [&] { return real(pointer); });
}

VRAMTRACE_EXPORT cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  VRAMTRACE_REAL(cudaMallocHost);
  return RecordAllocation(
      {.hook = Hook::cudaMallocHost, .caller = caller, .space = Space::kHost},
      [&] { return real(pointer, bytes); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  VRAMTRACE_REAL(cudaHostAlloc);
  return RecordAllocation(
      {.hook = Hook::cudaHostAlloc, .caller = caller, .space = Space::kHost},
      [&] { return real(pointer, bytes, flags); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  VRAMTRACE_REAL(cudaHostRegister);
  return RecordAllocation(
      {.hook = Hook::cudaHostRegister, .caller = caller, .space = Space::kHost},
      [&] { return real(pointer, bytes, flags); }, Stored(&pointer, bytes));
}

VRAMTRACE_EXPORT cudaError_t cudaFreeHost(void* pointer) {
  VRAMTRACE_REAL(cudaFreeHost);
  return RecordFree({.hook = Hook::cudaFreeHost, .caller = caller, .space = Space::kHost}, AddressOf(pointer),
                    [&] { return real(pointer); });
}

VRAMTRACE_EXPORT cudaError_t cudaHostUnregister(void* pointer) {
  VRAMTRACE_REAL(cudaHostUnregister);
  return RecordFree({.hook = Hook::cudaHostUnregister, .caller = caller, .space = Space::kHost},
                    AddressOf(pointer), [&] { return real(pointer); });
}

VRAMTRACE_EXPORT cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  VRAMTRACE_REAL(cudaMemGetInfo);
  const CallScope scope;
  const cudaError_t result = real(free_bytes, total_bytes);
  if (scope.outermost() && result == cudaSuccess) {
    const KeepErrno keep;
    vramtrace::record::DeviceMemory(
        vramtrace::hooks::CurrentDevice(vramtrace::hooks::Family::kRuntime, caller), *free_bytes,
        *total_bytes, vramtrace::record::QueryReason::kProgram);
  }
  return result;
}

// A status of the caller's may say "not found" while the call succeeds: then *function is null and stays so.
#define VRAMTRACE_LOOKUP(name, ...)                         \
  VRAMTRACE_REAL(name);                                     \
  const cudaError_t result = real(__VA_ARGS__);             \
  if (result == cudaSuccess && function != nullptr) {       \
    *function = vramtrace::hooks::HookedAddress(*function); \
  }                                                         \
  return result

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
VRAMTRACE_EXPORT cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function,
                                                     unsigned long long flags,
                                                     cudaDriverEntryPointQueryResult* status) {
  VRAMTRACE_LOOKUP(cudaGetDriverEntryPoint, symbol, function, flags, status);
}
#pragma GCC diagnostic pop

VRAMTRACE_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                                          unsigned long long flags,
                                                          cudaDriverEntryPointQueryResult* status) {
  VRAMTRACE_LOOKUP(cudaGetDriverEntryPoint_ptsz, symbol, function, flags, status);
}

VRAMTRACE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                              unsigned int version, unsigned long long flags,
                                                              cudaDriverEntryPointQueryResult* status) {
  VRAMTRACE_LOOKUP(cudaGetDriverEntryPointByVersion, symbol, function, version, flags, status);
}

VRAMTRACE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                                   unsigned int version,
                                                                   unsigned long long flags,
                                                                   cudaDriverEntryPointQueryResult* status) {
  VRAMTRACE_LOOKUP(cudaGetDriverEntryPointByVersion_ptsz, symbol, function, version, flags, status);
}

}  // extern "C"
