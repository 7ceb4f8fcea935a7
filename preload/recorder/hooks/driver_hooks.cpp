// The CUDA driver's functions, for programs and libraries that call it directly or asked for its addresses.
// Bodies as in runtime_hooks.cpp.

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

#define VRAMTRACE_REAL(name)                              \
  const void* const caller = __builtin_return_address(0); \
  const auto real = RealOf(Hook::name, &name, caller);    \
  if (real == nullptr) return CUDA_ERROR_NO_DEVICE

namespace {

template <typename T>
uint64_t AddressOf(T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
uint64_t AddressOf(CUdeviceptr pointer) { return pointer; }

template <typename T>
auto Stored(const T* out, uint64_t bytes) {
  return [out, bytes](bool succeeded) { return Allocated{succeeded ? AddressOf(*out) : 0, bytes}; };
}

uint64_t ElementBytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 1;
  }
}

// A lower bound, as for the runtime's arrays.
template <typename Description>
uint64_t ArrayBytes(const Description* description, uint64_t depth) {
  if (description == nullptr) return 0;
  return description->Width * (description->Height == 0 ? 1 : description->Height) *
         (depth == 0 ? 1 : depth) * description->NumChannels * ElementBytes(description->Format);
}

// Every level is half as wide, high and deep as the one before.
uint64_t MipmappedBytes(const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned int levels) {
  if (description == nullptr) return 0;
  uint64_t bytes = 0;
  const auto halved = [](uint64_t side, unsigned int level) {
    return side == 0 || side >> level > 0 ? side >> level : 1;
  };
  for (unsigned int level = 0; level < levels && level < 32; ++level) {
    CUDA_ARRAY3D_DESCRIPTOR one = *description;
    one.Width = halved(description->Width, level);
    one.Height = halved(description->Height, level);
    bytes += ArrayBytes(&one, halved(description->Depth, level));
  }
  return bytes;
}

}  // namespace

extern "C" {

VRAMTRACE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  VRAMTRACE_REAL(cuMemAlloc_v2);
  return RecordAllocation(
      {.hook = Hook::cuMemAlloc_v2, .caller = caller}, [&] { return real(pointer, bytes); },
      Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                                             unsigned int element_bytes) {
  VRAMTRACE_REAL(cuMemAllocPitch_v2);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocPitch_v2, .caller = caller},
      [&] { return real(pointer, pitch, width, height, element_bytes); },
      [&](bool succeeded) {
        return succeeded ? Allocated{*pointer, *pitch * height} : Allocated{0, width * height};
      });
}

VRAMTRACE_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  VRAMTRACE_REAL(cuMemAllocManaged);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocManaged, .caller = caller, .kind = MemoryKind::kManaged},
      [&] { return real(pointer, bytes, flags); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  VRAMTRACE_REAL(cuMemAllocAsync);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocAsync,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = AddressOf(stream)},
      [&] { return real(pointer, bytes, stream); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  VRAMTRACE_REAL(cuMemAllocAsync_ptsz);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocAsync_ptsz,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = AddressOf(stream)},
      [&] { return real(pointer, bytes, stream); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                                  CUstream stream) {
  VRAMTRACE_REAL(cuMemAllocFromPoolAsync);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocFromPoolAsync,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = AddressOf(stream)},
      [&] { return real(pointer, bytes, pool, stream); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                                       CUstream stream) {
  VRAMTRACE_REAL(cuMemAllocFromPoolAsync_ptsz);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocFromPoolAsync_ptsz,
       .caller = caller,
       .kind = MemoryKind::kPool,
       .stream = AddressOf(stream)},
      [&] { return real(pointer, bytes, pool, stream); }, Stored(pointer, bytes));
}

// Physical memory without an address. On the host (location types 2 to 4) it is pinned host memory.
VRAMTRACE_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                      const CUmemAllocationProp* properties, unsigned long long flags) {
  VRAMTRACE_REAL(cuMemCreate);
  const bool on_device = properties == nullptr || properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return RecordAllocation(
      {.hook = Hook::cuMemCreate,
       .caller = caller,
       .space = on_device ? Space::kDevice : Space::kHost,
       .kind = MemoryKind::kPhysical,
       .device = on_device && properties != nullptr ? properties->location.id : -1},
      [&] { return real(handle, bytes, properties, flags); },
      [&](bool succeeded) {
        return Allocated{succeeded ? *handle : 0, bytes};
      });
}

VRAMTRACE_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle,
                                                unsigned int flags) {
  VRAMTRACE_REAL(cuIpcOpenMemHandle_v2);
  return RecordAllocation(
      {.hook = Hook::cuIpcOpenMemHandle_v2, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(pointer, handle, flags); }, Stored(pointer, 0));
}

VRAMTRACE_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  VRAMTRACE_REAL(cuArrayCreate_v2);
  return RecordAllocation(
      {.hook = Hook::cuArrayCreate_v2, .caller = caller, .kind = MemoryKind::kArray},
      [&] { return real(array, description); }, Stored(array, ArrayBytes(description, 1)));
}

VRAMTRACE_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  VRAMTRACE_REAL(cuArray3DCreate_v2);
  const uint64_t depth = description == nullptr ? 1 : description->Depth;
  return RecordAllocation(
      {.hook = Hook::cuArray3DCreate_v2, .caller = caller, .kind = MemoryKind::kArray},
      [&] { return real(array, description); }, Stored(array, ArrayBytes(description, depth)));
}

VRAMTRACE_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array,
                                                 const CUDA_ARRAY3D_DESCRIPTOR* description,
                                                 unsigned int levels) {
  VRAMTRACE_REAL(cuMipmappedArrayCreate);
  return RecordAllocation(
      {.hook = Hook::cuMipmappedArrayCreate, .caller = caller, .kind = MemoryKind::kArray},
      [&] { return real(array, description, levels); }, Stored(array, MipmappedBytes(description, levels)));
}

VRAMTRACE_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  VRAMTRACE_REAL(cuMipmappedArrayDestroy);
  return RecordFree({.hook = Hook::cuMipmappedArrayDestroy, .caller = caller, .kind = MemoryKind::kArray},
                    AddressOf(array), [&] { return real(array); });
}

VRAMTRACE_EXPORT CUresult cuExternalMemoryGetMappedBuffer(
    CUdeviceptr* pointer, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
  VRAMTRACE_REAL(cuExternalMemoryGetMappedBuffer);
  return RecordAllocation(
      {.hook = Hook::cuExternalMemoryGetMappedBuffer, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(pointer, memory, description); },
      Stored(pointer, description == nullptr ? 0 : description->size));
}

VRAMTRACE_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr* pointer, CUmemoryPool pool,
                                                 CUmemPoolPtrExportData* data) {
  VRAMTRACE_REAL(cuMemPoolImportPointer);
  return RecordAllocation(
      {.hook = Hook::cuMemPoolImportPointer, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(pointer, pool, data); }, Stored(pointer, 0));
}

// A handle to memory that another process made: released like one of our own, counted by its owner.
VRAMTRACE_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                                         CUmemAllocationHandleType type) {
  VRAMTRACE_REAL(cuMemImportFromShareableHandle);
  return RecordAllocation(
      {.hook = Hook::cuMemImportFromShareableHandle, .caller = caller, .kind = MemoryKind::kImported},
      [&] { return real(handle, shared, type); },
      [&](bool succeeded) {
        return Allocated{succeeded ? *handle : 0, 0};
      });
}

// See cudaGraphAddMemAllocNode.
VRAMTRACE_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph,
                                                 const CUgraphNode* dependencies, size_t count,
                                                 CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  VRAMTRACE_REAL(cuGraphAddMemAllocNode);
  return RecordAllocation(
      {.hook = Hook::cuGraphAddMemAllocNode, .caller = caller, .kind = MemoryKind::kGraph},
      [&] { return real(node, graph, dependencies, count, parameters); },
      [&](bool succeeded) {
        return Allocated{succeeded ? parameters->dptr : 0, parameters == nullptr ? 0 : parameters->bytesize};
      });
}

VRAMTRACE_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph,
                                                const CUgraphNode* dependencies, size_t count,
                                                CUdeviceptr pointer) {
  VRAMTRACE_REAL(cuGraphAddMemFreeNode);
  return RecordFree({.hook = Hook::cuGraphAddMemFreeNode, .caller = caller, .kind = MemoryKind::kGraph},
                    pointer, [&] { return real(node, graph, dependencies, count, pointer); });
}

VRAMTRACE_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  VRAMTRACE_REAL(cuMemFree_v2);
  return RecordFree({.hook = Hook::cuMemFree_v2, .caller = caller}, pointer, [&] { return real(pointer); });
}

VRAMTRACE_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  VRAMTRACE_REAL(cuMemFreeAsync);
  return RecordFree({.hook = Hook::cuMemFreeAsync,
                     .caller = caller,
                     .kind = MemoryKind::kPool,
                     .stream = AddressOf(stream)},
                    pointer, [&] { return real(pointer, stream); });
}

VRAMTRACE_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  VRAMTRACE_REAL(cuMemFreeAsync_ptsz);
  return RecordFree({.hook = Hook::cuMemFreeAsync_ptsz,
                     .caller = caller,
                     .kind = MemoryKind::kPool,
                     .stream = AddressOf(stream)},
                    pointer, [&] { return real(pointer, stream); });
}

VRAMTRACE_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  VRAMTRACE_REAL(cuMemRelease);
  return RecordFree({.hook = Hook::cuMemRelease, .caller = caller, .kind = MemoryKind::kPhysical}, handle,
                    [&] { return real(handle); });
}

VRAMTRACE_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  VRAMTRACE_REAL(cuIpcCloseMemHandle);
  return RecordFree({.hook = Hook::cuIpcCloseMemHandle, .caller = caller, .kind = MemoryKind::kImported},
                    pointer, [&] { return real(pointer); });
}

VRAMTRACE_EXPORT CUresult cuArrayDestroy(CUarray array) {
  VRAMTRACE_REAL(cuArrayDestroy);
  return RecordFree({.hook = Hook::cuArrayDestroy, .caller = caller, .kind = MemoryKind::kArray},
                    AddressOf(array), [&] { return real(array); });
}

VRAMTRACE_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
  VRAMTRACE_REAL(cuMemPoolTrimTo);
  return RecordTrim({.hook = Hook::cuMemPoolTrimTo, .caller = caller, .kind = MemoryKind::kPool},
                    [&] { return real(pool, bytes_to_keep); });
}

VRAMTRACE_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  VRAMTRACE_REAL(cuMemPoolDestroy);
  return RecordTrim({.hook = Hook::cuMemPoolDestroy, .caller = caller, .kind = MemoryKind::kPool},
                    [&] { return real(pool); });
}

VRAMTRACE_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
  VRAMTRACE_REAL(cuDeviceGraphMemTrim);
  return RecordTrim({.hook = Hook::cuDeviceGraphMemTrim, .caller = caller, .kind = MemoryKind::kPool},
                    [&] { return real(device); });
}

VRAMTRACE_EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                                   CUmemGenericAllocationHandle handle, unsigned long long flags) {
  VRAMTRACE_REAL(cuMemMap);
  const CallScope scope;
  const CUresult result = real(pointer, bytes, offset, handle, flags);
  if (scope.outermost() && result == CUDA_SUCCESS) {
    const KeepErrno keep;
    vramtrace::record::Mapped(vramtrace::hooks::CurrentDevice(vramtrace::hooks::Family::kDriver, caller),
                              pointer, bytes, handle, offset);
  }
  return result;
}

VRAMTRACE_EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  VRAMTRACE_REAL(cuMemUnmap);
  const CallScope scope;
  if (scope.outermost()) {
    const KeepErrno keep;
    vramtrace::record::Unmapped(vramtrace::hooks::CurrentDevice(vramtrace::hooks::Family::kDriver, caller),
                                pointer, bytes);
  }
  const CUresult result = real(pointer, bytes);
  if (scope.outermost() && result == CUDA_SUCCESS) {
    vramtrace::hooks::QueryDeviceMemory(vramtrace::hooks::Family::kDriver, caller,
                                        vramtrace::record::QueryReason::kDriverFree);
  }
  return result;
}

VRAMTRACE_EXPORT CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  VRAMTRACE_REAL(cuMemAllocHost_v2);
  return RecordAllocation(
      {.hook = Hook::cuMemAllocHost_v2, .caller = caller, .space = Space::kHost},
      [&] { return real(pointer, bytes); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  VRAMTRACE_REAL(cuMemHostAlloc);
  return RecordAllocation(
      {.hook = Hook::cuMemHostAlloc, .caller = caller, .space = Space::kHost},
      [&] { return real(pointer, bytes, flags); }, Stored(pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  VRAMTRACE_REAL(cuMemHostRegister_v2);
  return RecordAllocation(
      {.hook = Hook::cuMemHostRegister_v2, .caller = caller, .space = Space::kHost},
      [&] { return real(pointer, bytes, flags); }, Stored(&pointer, bytes));
}

VRAMTRACE_EXPORT CUresult cuMemFreeHost(void* pointer) {
  VRAMTRACE_REAL(cuMemFreeHost);
  return RecordFree({.hook = Hook::cuMemFreeHost, .caller = caller, .space = Space::kHost},
                    AddressOf(pointer), [&] { return real(pointer); });
}

VRAMTRACE_EXPORT CUresult cuMemHostUnregister(void* pointer) {
  VRAMTRACE_REAL(cuMemHostUnregister);
  return RecordFree({.hook = Hook::cuMemHostUnregister, .caller = caller, .space = Space::kHost},
                    AddressOf(pointer), [&] { return real(pointer); });
}

VRAMTRACE_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  VRAMTRACE_REAL(cuMemGetInfo_v2);
  const CallScope scope;
  const CUresult result = real(free_bytes, total_bytes);
  if (scope.outermost() && result == CUDA_SUCCESS) {
    const KeepErrno keep;
    vramtrace::record::DeviceMemory(
        vramtrace::hooks::CurrentDevice(vramtrace::hooks::Family::kDriver, caller), *free_bytes, *total_bytes,
        vramtrace::record::QueryReason::kProgram);
  }
  return result;
}

VRAMTRACE_EXPORT CUresult cuGetProcAddress_v1(const char* symbol, void** function, int version,
                                              cuuint64_t flags) {
  VRAMTRACE_REAL(cuGetProcAddress_v1);
  const CUresult result = real(symbol, function, version, flags);
  if (result == CUDA_SUCCESS && function != nullptr) *function = vramtrace::hooks::HookedAddress(*function);
  return result;
}

VRAMTRACE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                              cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  VRAMTRACE_REAL(cuGetProcAddress_v2);
  const CUresult result = real(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS && function != nullptr) *function = vramtrace::hooks::HookedAddress(*function);
  return result;
}

}  // extern "C"
