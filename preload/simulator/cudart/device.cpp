#include "preload/simulator/core/device.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "preload/simulator/core/memory.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Fail;
using runtime::Result;

namespace {

// The last value a program set for each limit, so that it reads it back; CUDA's defaults before.
size_t limits[16] = {1024, 1048576, 8388608, 2, 2048, 128, 0};

int Attribute(int device, cudaDeviceAttr attribute) {
  int value = 0;
  Status status = DeviceAttribute(device, static_cast<int>(attribute), &value);
  return status == Status::kOk ? value : 0;
}

// CUDA 12 also has the clocks in the structure, 13 the places in memory.
void FillMajorSpecific([[maybe_unused]] cudaDeviceProp& properties, [[maybe_unused]] int device) {
#if CUDART_VERSION >= 13000
  properties.deviceNumaId = -1;
  properties.hostNumaId = -1;
#else
  properties.clockRate = Attribute(device, cudaDevAttrClockRate);
  properties.memoryClockRate = Attribute(device, cudaDevAttrMemoryClockRate);
  properties.deviceOverlap = 1;
  properties.singleToDoublePrecisionPerfRatio =
      Attribute(device, cudaDevAttrSingleToDoublePrecisionPerfRatio);
#endif
}

void FillProperties(const Device& facts, cudaDeviceProp& properties) {
  auto attribute = [&](cudaDeviceAttr which) { return Attribute(facts.index, which); };
  auto size = [&](cudaDeviceAttr which) { return static_cast<size_t>(attribute(which)); };
  std::snprintf(properties.name, sizeof properties.name, "%s", facts.name.c_str());
  std::memcpy(properties.uuid.bytes, facts.uuid, sizeof facts.uuid);
  properties.totalGlobalMem = facts.total_bytes;
  properties.sharedMemPerBlock = size(cudaDevAttrMaxSharedMemoryPerBlock);
  properties.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  properties.warpSize = attribute(cudaDevAttrWarpSize);
  properties.memPitch = size(cudaDevAttrMaxPitch);
  properties.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  properties.maxThreadsDim[0] = attribute(cudaDevAttrMaxBlockDimX);
  properties.maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimY);
  properties.maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ);
  properties.maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
  properties.maxGridSize[1] = attribute(cudaDevAttrMaxGridDimY);
  properties.maxGridSize[2] = attribute(cudaDevAttrMaxGridDimZ);
  properties.totalConstMem = size(cudaDevAttrTotalConstantMemory);
  properties.major = attribute(cudaDevAttrComputeCapabilityMajor);
  properties.minor = attribute(cudaDevAttrComputeCapabilityMinor);
  properties.textureAlignment = size(cudaDevAttrTextureAlignment);
  properties.texturePitchAlignment = size(cudaDevAttrTexturePitchAlignment);
  properties.surfaceAlignment = size(cudaDevAttrSurfaceAlignment);
  properties.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  properties.canMapHostMemory = attribute(cudaDevAttrCanMapHostMemory);
  properties.concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
  properties.pciBusID = attribute(cudaDevAttrPciBusId);
  properties.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  properties.unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing);
  properties.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  properties.l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  properties.persistingL2CacheMaxSize = attribute(cudaDevAttrMaxPersistingL2CacheSize);
  properties.accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
  properties.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  properties.streamPrioritiesSupported = attribute(cudaDevAttrStreamPrioritiesSupported);
  properties.globalL1CacheSupported = attribute(cudaDevAttrGlobalL1CacheSupported);
  properties.localL1CacheSupported = attribute(cudaDevAttrLocalL1CacheSupported);
  properties.sharedMemPerMultiprocessor = size(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  properties.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  properties.managedMemory = attribute(cudaDevAttrManagedMemory);
  properties.concurrentManagedAccess = attribute(cudaDevAttrConcurrentManagedAccess);
  properties.computePreemptionSupported = attribute(cudaDevAttrComputePreemptionSupported);
  properties.canUseHostPointerForRegisteredMem = attribute(cudaDevAttrCanUseHostPointerForRegisteredMem);
  properties.cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
  properties.sharedMemPerBlockOptin = size(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  properties.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  properties.reservedSharedMemPerBlock = size(cudaDevAttrReservedSharedMemoryPerBlock);
  properties.hostRegisterSupported = attribute(cudaDevAttrHostRegisterSupported);
  properties.hostRegisterReadOnlySupported = attribute(cudaDevAttrHostRegisterReadOnlySupported);
  properties.memoryPoolsSupported = attribute(cudaDevAttrMemoryPoolsSupported);
  properties.memoryPoolSupportedHandleTypes =
      static_cast<unsigned>(attribute(cudaDevAttrMemoryPoolSupportedHandleTypes));
  properties.ipcEventSupported = attribute(cudaDevAttrIpcEventSupport);
  properties.clusterLaunch = attribute(cudaDevAttrClusterLaunch);
  properties.unifiedFunctionPointers = 1;
  FillMajorSpecific(properties, facts.index);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = Forked() ? 0 : DeviceCount();
  if (Forked()) return Result(Status::kForked);
  return *count > 0 ? cudaSuccess : Fail(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = CurrentDevice();
  return Forked() ? Result(Status::kForked) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Status status = SetCurrentDevice(device);
  return Result(status == Status::kOk ? EnsureContext(device) : status);  // initialises since CUDA 12
}

cudaError_t cudaInitDevice(int device, unsigned /*device_flags*/, unsigned /*flags*/) {
  return Result(EnsureContext(device));
}

cudaError_t cudaDeviceSynchronize() {
  if (Status status = EnsureContext(); status != Status::kOk) return Result(status);
  Synchronised(CurrentDevice());
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = DriverVersion();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  RuntimeInUse(CUDART_VERSION);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// A macro of the CUDA 12 headers renames it to cudaGetDeviceProperties_v2.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Result(Status::kInvalidDevice);
  *properties = {};
  FillProperties(*facts, *properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Result(DeviceAttribute(device, static_cast<int>(attribute), value));
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr /*attribute*/, int source,
                                      int destination) {
  if (DeviceAt(source) == nullptr || DeviceAt(destination) == nullptr) return Result(Status::kInvalidDevice);
  *value = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Result(Status::kInvalidDevice);
  if (length < 13) return Result(Status::kInvalidValue);
  std::snprintf(text, static_cast<size_t>(length), "%s", facts->pci_bus_id);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  for (int index = 0; index < DeviceCount(); ++index) {
    if (strcasecmp(DeviceAt(index)->pci_bus_id, text) != 0) continue;
    *device = index;
    return cudaSuccess;
  }
  return Result(Status::kInvalidValue);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  if (lowest != nullptr) *lowest = kLowestStreamPriority;
  if (highest != nullptr) *highest = kHighestStreamPriority;
  return cudaSuccess;
}

// Links between cards are not simulated.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (DeviceAt(device) == nullptr || DeviceAt(peer) == nullptr) return Result(Status::kInvalidDevice);
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned /*flags*/) {
  return DeviceAt(peer) == nullptr ? Result(Status::kInvalidDevice) : Fail(cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (static_cast<size_t>(limit) >= std::size(limits)) return Result(Status::kInvalidValue);
  *value = limits[limit];
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (static_cast<size_t>(limit) >= std::size(limits)) return Result(Status::kInvalidValue);
  limits[limit] = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* configuration) {
  *configuration = cudaFuncCachePreferNone;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache /*configuration*/) { return cudaSuccess; }

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned /*flags*/) { return cudaSuccess; }

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* /*wanted*/) {
  *device = 0;
  return DeviceCount() > 0 ? cudaSuccess : Fail(cudaErrorNoDevice);
}

cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

// Private tables are never answered (preload/simulator/README.md).
cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* /*id*/) {
  *table = nullptr;
  return Fail(cudaErrorSymbolNotFound);
}

}  // extern "C"
