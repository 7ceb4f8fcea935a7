#include "preload/simulator/core/host_memory.h"

#include "preload/simulator/core/memory.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Fail;
using runtime::Place;
using runtime::Result;

namespace {

cudaMemoryType HostType(HostKind kind) {
  return kind == HostKind::kManaged ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
}

bool IsManaged(const void* address) {
  HostRange host;
  return FindHostRange(address, &host) && host.kind == HostKind::kManaged;
}

}  // namespace

extern "C" {

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return Result(AllocateHost(HostKind::kPinned, bytes, flags, address));
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return Result(AllocateHost(HostKind::kPinned, bytes, 0, address));
}

cudaError_t cudaFreeHost(void* address) { return Result(FreeHost(address)); }

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned flags) {
  HostRange host;
  if (FindHostRange(address, &host)) return Fail(cudaErrorHostMemoryAlreadyRegistered);
  return Result(RegisterHost(address, bytes, flags));
}

cudaError_t cudaHostUnregister(void* address) {
  Status status = UnregisterHost(address);
  return status == Status::kNotFound ? Fail(cudaErrorHostMemoryNotRegistered) : Result(status);
}

cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned /*flags*/) {
  HostRange host;
  if (!FindHostRange(address, &host)) return Result(Status::kInvalidValue);
  *device_address = address;  // one address space, as with unified addressing
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* address) {
  HostRange host;
  if (!FindHostRange(address, &host)) return Result(Status::kInvalidValue);
  *flags = host.flags;
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned flags) {
  if (bytes == 0) return Result(Status::kInvalidValue);
  return Result(AllocateHost(HostKind::kManaged, bytes, flags, address));
}

// Pages of managed memory are not moved: they never count against the card.
cudaError_t cudaMemAdvise(const void* address, size_t /*bytes*/, cudaMemoryAdvise /*advice*/,
                          Place /*place*/) {
  return IsManaged(address) ? cudaSuccess : Result(Status::kInvalidValue);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void* address, size_t /*bytes*/, Place /*place*/, unsigned /*flags*/,
                                 cudaStream_t /*stream*/) {
  return IsManaged(address) ? cudaSuccess : Result(Status::kInvalidValue);
}
#else
cudaError_t cudaMemPrefetchAsync(const void* address, size_t /*bytes*/, Place /*place*/,
                                 cudaStream_t /*stream*/) {
  return IsManaged(address) ? cudaSuccess : Result(Status::kInvalidValue);
}
#endif

cudaError_t cudaStreamAttachMemAsync(cudaStream_t /*stream*/, void* address, size_t /*bytes*/,
                                     unsigned /*flags*/) {
  return IsManaged(address) ? cudaSuccess : Result(Status::kInvalidValue);
}

// Interior pointers too; anything CUDA does not know is unregistered, with success (since CUDA 11).
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (DeviceCount() == 0) return Fail(cudaErrorNoDevice);
  *attributes = {};
  auto* pointer = const_cast<void*>(address);
  Range range;
  HostRange host;
  if (IsDeviceAddress(address) && FindRange(address, &range)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = range.device;
    attributes->devicePointer = pointer;
  } else if (FindHostRange(address, &host)) {
    attributes->type = HostType(host.kind);
    attributes->device = host.device;
    attributes->devicePointer = pointer;
    attributes->hostPointer = pointer;
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = pointer;
  }
  return cudaSuccess;
}

}  // extern "C"
