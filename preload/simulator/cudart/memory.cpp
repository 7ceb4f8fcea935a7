#include "preload/simulator/core/memory.h"

#include <cuda.h>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/host_memory.h"
#include "preload/simulator/core/pools.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Result;

namespace {

constexpr size_t kPitch = 512;

// Copies and fills on a stream; while it captures, they belong to the graph. Their bytes are moved all the
// same: nothing runs at a graph launch, and the first values are better than none.
template <class Run>
cudaError_t OnStream(cudaStream_t handle, CUgraphNodeType type, Run run) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  if (Status status = EnsureContext(stream->device); status != Status::kOk) return Result(status);
  CaptureWork(stream, type);
  return Result(run());
}

Status Fill2D(void* destination, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) return Status::kInvalidValue;
  for (size_t row = 0; row < height; ++row) {
    Status status =
        Fill(static_cast<char*>(destination) + row * pitch, static_cast<uint32_t>(value), 1, width);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (address == nullptr) return Result(Status::kInvalidValue);
  return Result(Allocate(CurrentDevice(), bytes, address));
}

cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return Result(Allocate(CurrentDevice(), *pitch * height, address));
}

cudaError_t cudaFree(void* address) {
  if (address == nullptr) return Result(EnsureContext());  // the usual way to force initialisation
  HostRange host;
  if (FindHostRange(address, &host) && host.kind == HostKind::kManaged) return Result(FreeHost(address));
  Status pooled = FreeToPool(address);
  return Result(pooled == Status::kNotFound ? Free(address) : pooled);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  MemoryInfo info;
  if (Status status = QueryMemory(CurrentDevice(), &info); status != Status::kOk) return Result(status);
  *free_bytes = info.total_bytes - info.used_bytes;
  *total_bytes = info.total_bytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind /*kind*/) {
  return OnStream(nullptr, CU_GRAPH_NODE_TYPE_MEMCPY, [&] { return Copy(destination, source, bytes); });
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  return OnStream(stream, CU_GRAPH_NODE_TYPE_MEMCPY, [&] { return Copy(destination, source, bytes); });
}

cudaError_t cudaMemcpyPeer(void* destination, int /*to*/, const void* source, int /*from*/, size_t bytes) {
  return OnStream(nullptr, CU_GRAPH_NODE_TYPE_MEMCPY, [&] { return Copy(destination, source, bytes); });
}

cudaError_t cudaMemcpyPeerAsync(void* destination, int /*to*/, const void* source, int /*from*/, size_t bytes,
                                cudaStream_t stream) {
  return OnStream(stream, CU_GRAPH_NODE_TYPE_MEMCPY, [&] { return Copy(destination, source, bytes); });
}

cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind /*kind*/) {
  return OnStream(nullptr, CU_GRAPH_NODE_TYPE_MEMCPY, [&] {
    return Copy2D(destination, destination_pitch, source, source_pitch, width, height);
  });
}

cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind /*kind*/,
                              cudaStream_t stream) {
  return OnStream(stream, CU_GRAPH_NODE_TYPE_MEMCPY, [&] {
    return Copy2D(destination, destination_pitch, source, source_pitch, width, height);
  });
}

cudaError_t cudaMemset(void* destination, int value, size_t bytes) {
  return OnStream(nullptr, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&] { return Fill(destination, static_cast<uint32_t>(value), 1, bytes); });
}

cudaError_t cudaMemsetAsync(void* destination, int value, size_t bytes, cudaStream_t stream) {
  return OnStream(stream, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&] { return Fill(destination, static_cast<uint32_t>(value), 1, bytes); });
}

cudaError_t cudaMemset2D(void* destination, size_t pitch, int value, size_t width, size_t height) {
  return OnStream(nullptr, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&] { return Fill2D(destination, pitch, value, width, height); });
}

cudaError_t cudaMemset2DAsync(void* destination, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return OnStream(stream, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&] { return Fill2D(destination, pitch, value, width, height); });
}

}  // extern "C"
