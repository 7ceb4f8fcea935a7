#include "preload/simulator/core/memory.h"

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/host_memory.h"
#include "preload/simulator/core/pools.h"
#include "preload/simulator/core/streams.h"
#include "preload/simulator/cuda/driver.h"

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::driver;

namespace {

// Work on a stream, which must be one.
template <class Run>
CUresult On(CUstream handle, Run run) {
  return FindStream(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : Result(run());
}

struct Place {
  bool device = false;
  int ordinal = 0;
  bool host = false;
  HostRange host_range;
  Range range;
};

Place Find(CUdeviceptr address) {
  Place place;
  if (IsDeviceAddress(Pointer(address)) && FindRange(Pointer(address), &place.range)) {
    place.device = true;
    place.ordinal = place.range.device;
  } else if (FindHostRange(Pointer(address), &place.host_range)) {
    place.host = true;
    place.ordinal = place.host_range.device;
  }
  return place;
}

template <class T>
CUresult Write(void* out, T value) {
  *static_cast<T*>(out) = value;
  return CUDA_SUCCESS;
}

CUresult PointerAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address, const Place& place) {
  bool managed = place.host && place.host_range.kind == HostKind::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Write(out, PrimaryContext(place.ordinal));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Write<unsigned>(out, place.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Write(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return place.host ? Write(out, Pointer(address)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Write<unsigned>(out, managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Write(out, place.ordinal);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Write<CUdeviceptr>(out, place.device ? place.range.base : place.host_range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Write<size_t>(out, place.device ? place.range.bytes : place.host_range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Write<unsigned>(out, 1);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Write<unsigned long long>(out, place.device ? place.range.base : place.host_range.base);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Write<int>(out, 0);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  MemoryInfo info;
  if (Status status = QueryMemory(CurrentDevice(), &info); status != Status::kOk) return Result(status);
  *free_bytes = info.total_bytes - info.used_bytes;
  *total_bytes = info.total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return Result(Allocate(CurrentDevice(), bytes, reinterpret_cast<void**>(address)));
}

CUresult cuMemFree(CUdeviceptr address) {
  HostRange host;
  if (FindHostRange(Pointer(address), &host) && host.kind == HostKind::kManaged) {
    return Result(FreeHost(Pointer(address)));
  }
  Status pooled = FreeToPool(Pointer(address));
  return Result(pooled == Status::kNotFound ? Free(Pointer(address)) : pooled);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return On(stream, [&] {
    return AllocateFromPool(CurrentPool(CurrentDevice()), bytes, reinterpret_cast<void**>(address));
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return On(stream,
            [&] { return AllocateFromPool(FindPool(pool), bytes, reinterpret_cast<void**>(address)); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return On(stream, [&] {
    Status pooled = FreeToPool(Pointer(address));
    return pooled == Status::kNotFound ? Free(Pointer(address)) : pooled;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return Result(AllocateHost(HostKind::kManaged, bytes, flags, reinterpret_cast<void**>(address)));
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return Result(AllocateHost(HostKind::kPinned, bytes, flags, address));
}

CUresult cuMemAllocHost(void** address, size_t bytes) {
  return Result(AllocateHost(HostKind::kPinned, bytes, 0, address));
}

CUresult cuMemFreeHost(void* address) { return Result(FreeHost(address)); }

CUresult cuMemHostRegister(void* address, size_t bytes, unsigned flags) {
  HostRange host;
  if (FindHostRange(address, &host)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  return Result(RegisterHost(address, bytes, flags));
}

CUresult cuMemHostUnregister(void* address) {
  Status status = UnregisterHost(address);
  return status == Status::kNotFound ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : Result(status);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* device_address, void* address, unsigned /*flags*/) {
  HostRange host;
  if (!FindHostRange(address, &host)) return CUDA_ERROR_INVALID_VALUE;
  *device_address = reinterpret_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  Range range;
  if (!FindRange(Pointer(address), &range)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range.base;
  if (bytes != nullptr) *bytes = range.bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  Place place = Find(address);
  if (!place.device && !place.host) return CUDA_ERROR_INVALID_VALUE;
  return PointerAttribute(out, attribute, address, place);
}

// Never an error for an unknown pointer: each attribute then gets its null value.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** out,
                                CUdeviceptr address) {
  Place place = Find(address);
  for (unsigned i = 0; i < count; ++i) {
    bool known = place.device || place.host;
    if (known && PointerAttribute(out[i], attributes[i], address, place) == CUDA_SUCCESS) continue;
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<uint64_t*>(out[i]) = 0;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(out[i]) = CU_DEVICE_INVALID;
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      case CU_POINTER_ATTRIBUTE_MAPPED:
        *static_cast<unsigned*>(out[i]) = 0;
        break;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return Result(Copy(Pointer(destination), Pointer(source), bytes));
}

CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return On(stream, [&] { return Copy(Pointer(destination), Pointer(source), bytes); });
}

CUresult cuMemcpyHtoD(CUdeviceptr destination, const void* source, size_t bytes) {
  return Result(Copy(Pointer(destination), source, bytes));
}

CUresult cuMemcpyDtoH(void* destination, CUdeviceptr source, size_t bytes) {
  return Result(Copy(destination, Pointer(source), bytes));
}

CUresult cuMemcpyDtoD(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return Result(Copy(Pointer(destination), Pointer(source), bytes));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream) {
  return On(stream, [&] { return Copy(Pointer(destination), source, bytes); });
}

CUresult cuMemcpyDtoHAsync(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return On(stream, [&] { return Copy(destination, Pointer(source), bytes); });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return On(stream, [&] { return Copy(Pointer(destination), Pointer(source), bytes); });
}

CUresult cuMemsetD8(CUdeviceptr destination, unsigned char value, size_t count) {
  return Result(Fill(Pointer(destination), value, 1, count));
}

CUresult cuMemsetD16(CUdeviceptr destination, unsigned short value, size_t count) {
  return Result(Fill(Pointer(destination), value, 2, count));
}

CUresult cuMemsetD32(CUdeviceptr destination, unsigned value, size_t count) {
  return Result(Fill(Pointer(destination), value, 4, count));
}

CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count, CUstream stream) {
  return On(stream, [&] { return Fill(Pointer(destination), value, 1, count); });
}

CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value, size_t count, CUstream stream) {
  return On(stream, [&] { return Fill(Pointer(destination), value, 2, count); });
}

CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned value, size_t count, CUstream stream) {
  return On(stream, [&] { return Fill(Pointer(destination), value, 4, count); });
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned /*flags*/) {
  return On(stream, [&] { return Store(Pointer(address), &value, sizeof value); });
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned /*flags*/) {
  return On(stream, [&] { return Store(Pointer(address), &value, sizeof value); });
}

}  // extern "C"
