#include "preload/simulator/core/pools.h"

#include <cuda.h>

#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Result;

namespace {

cudaMemPool_t Handle(Pool* pool) { return reinterpret_cast<cudaMemPool_t>(pool); }

cudaError_t AllocateOn(Pool* pool, size_t bytes, cudaStream_t handle, void** address) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  CaptureWork(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  return Result(AllocateFromPool(pool, bytes, address));
}

}  // namespace

extern "C" {

cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream) {
  return AllocateOn(CurrentPool(CurrentDevice()), bytes, stream, address);
}

cudaError_t cudaMallocFromPoolAsync(void** address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return AllocateOn(FindPool(pool), bytes, stream, address);
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t handle) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  CaptureWork(stream, CU_GRAPH_NODE_TYPE_MEM_FREE);
  Status pooled = FreeToPool(address);
  return Result(pooled == Status::kNotFound ? Free(address) : pooled);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  Pool* found = DefaultPool(device);
  if (found == nullptr) return Result(Status::kInvalidDevice);
  *pool = Handle(found);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  Pool* found = CurrentPool(device);
  if (found == nullptr) return Result(Status::kInvalidDevice);
  *pool = Handle(found);
  return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return Result(SetCurrentPool(device, FindPool(pool)));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (properties->location.type != cudaMemLocationTypeDevice) return Result(Status::kNotSupported);
  Pool* made = nullptr;
  Status status = CreatePool(properties->location.id, &made);
  if (status == Status::kOk) *pool = Handle(made);
  return Result(status);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return Result(DestroyPool(FindPool(pool))); }

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  Pool* found = FindPool(pool);
  if (found == nullptr) return Result(Status::kInvalidValue);
  TrimPool(found, keep);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  Pool* found = FindPool(pool);
  if (found == nullptr) return Result(Status::kInvalidValue);
  PoolUsage usage = UsageOf(found);
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      *static_cast<int*>(value) = 1;
      break;
    case cudaMemPoolAttrReleaseThreshold:
      *bytes = usage.release_threshold;
      break;
    case cudaMemPoolAttrReservedMemCurrent:
      *bytes = usage.reserved_bytes;
      break;
    case cudaMemPoolAttrReservedMemHigh:
      *bytes = usage.reserved_high_bytes;
      break;
    case cudaMemPoolAttrUsedMemCurrent:
      *bytes = usage.used_bytes;
      break;
    case cudaMemPoolAttrUsedMemHigh:
      *bytes = usage.used_high_bytes;
      break;
    default:
      return Result(Status::kNotSupported);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  Pool* found = FindPool(pool);
  if (found == nullptr) return Result(Status::kInvalidValue);
  switch (attribute) {
    // Work completes at once, so every policy of reuse comes to the same.
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      break;
    case cudaMemPoolAttrReleaseThreshold:
      SetReleaseThreshold(found, *static_cast<cuuint64_t*>(value));
      break;
    case cudaMemPoolAttrReservedMemHigh:
      ResetReservedHigh(found);
      break;
    case cudaMemPoolAttrUsedMemHigh:
      ResetUsedHigh(found);
      break;
    default:
      return Result(Status::kInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* /*access*/, size_t /*count*/) {
  return FindPool(pool) == nullptr ? Result(Status::kInvalidValue) : cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  Pool* found = FindPool(pool);
  if (found == nullptr) return Result(Status::kInvalidValue);
  bool own = location->type == cudaMemLocationTypeDevice && location->id == PoolDevice(found);
  *flags = own ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  return cudaSuccess;
}

// Memory nodes of graphs come from the pools here, so graphs own none.
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType /*attribute*/, void* value) {
  if (DeviceAt(device) == nullptr) return Result(Status::kInvalidDevice);
  *static_cast<cuuint64_t*>(value) = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType /*attribute*/,
                                           void* /*value*/) {
  return DeviceAt(device) == nullptr ? Result(Status::kInvalidDevice) : cudaSuccess;
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return DeviceAt(device) == nullptr ? Result(Status::kInvalidDevice) : cudaSuccess;
}

}  // extern "C"
