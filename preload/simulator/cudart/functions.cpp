#include "preload/simulator/core/kernels.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Result;

namespace {

void* Handle(const void* host) { return const_cast<void*>(host); }

cudaError_t Occupy(int* blocks, const void* kernel, int threads, size_t shared) {
  return Result(Occupancy(CurrentDevice(), FactsOf(kernel), threads, shared, blocks));
}

cudaError_t SetAttribute(const void* kernel, int device, cudaFuncAttribute attribute, int value) {
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      return Result(SetMaxDynamicShared(kernel, device, value));
    case cudaFuncAttributePreferredSharedMemoryCarveout:
    case cudaFuncAttributeClusterDimMustBeSet:
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return cudaSuccess;  // hints without effect here
    default:
      return Result(Status::kInvalidValue);
  }
}

bool HasClusters() { return DeviceAt(CurrentDevice())->gpu->compute_major >= 9; }

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (Status status = EnsureContext(); status != Status::kOk) return Result(status);
  KernelFacts facts = FactsOf(kernel);
  *attributes = {};
  attributes->maxThreadsPerBlock = facts.threads_per_block;
  attributes->numRegs = facts.registers;
  attributes->sharedSizeBytes = static_cast<size_t>(facts.static_shared_bytes);
  attributes->ptxVersion = CodeVersion(CurrentDevice());
  attributes->binaryVersion = attributes->ptxVersion;
  attributes->maxDynamicSharedSizeBytes = facts.max_dynamic_shared_bytes;
  attributes->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return SetAttribute(kernel, CurrentDevice(), attribute, value);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                            int device) {
  return SetAttribute(kernel, device, attribute, value);
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaFuncSetCacheConfig(const void* /*kernel*/, cudaFuncCache /*configuration*/) {
  return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  *name = KernelName(kernel);
  return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  *function = static_cast<cudaFunction_t>(Handle(symbol));
  return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  *kernel = static_cast<cudaKernel_t>(Handle(symbol));
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t shared) {
  return Occupy(blocks, kernel, threads, shared);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                   int threads, size_t shared,
                                                                   unsigned /*flags*/) {
  return Occupy(blocks, kernel, threads, shared);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* kernel, int blocks,
                                                      int /*threads*/) {
  if (blocks <= 0) return Result(Status::kInvalidValue);
  const Device* device = DeviceAt(CurrentDevice());
  if (device == nullptr) return Result(Status::kInvalidDevice);
  int share = device->limits->shared_per_multiprocessor / blocks - device->limits->shared_reserved_per_block;
  int most = FactsOf(kernel).max_dynamic_shared_bytes;
  *bytes = static_cast<size_t>(share < 0 ? 0 : share < most ? share : most);
  return cudaSuccess;
}

// Clusters of eight blocks are the portable size; a cluster then fills one part of the device.
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* /*kernel*/,
                                                 const cudaLaunchConfig_t* /*configuration*/) {
  if (!HasClusters()) return Result(Status::kNotSupported);
  *size = 8;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* configuration) {
  if (!HasClusters()) return Result(Status::kNotSupported);
  int size = 1;
  for (unsigned i = 0; i < configuration->numAttrs; ++i) {
    if (configuration->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    auto dimension = configuration->attrs[i].val.clusterDim;
    size = static_cast<int>(dimension.x * dimension.y * dimension.z);
  }
  if (size <= 0) return Result(Status::kInvalidValue);
  dim3 block = configuration->blockDim;
  int blocks = 0;
  cudaError_t error =
      Occupy(&blocks, kernel, static_cast<int>(block.x * block.y * block.z), configuration->dynamicSmemBytes);
  if (error == cudaSuccess) *clusters = blocks * DeviceAt(CurrentDevice())->multiprocessors / size;
  return error;
}

}  // extern "C"
