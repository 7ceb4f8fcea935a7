#include "preload/simulator/core/device.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "preload/simulator/core/pools.h"
#include "preload/simulator/cuda/driver.h"

using namespace vramtrace::simulator;
using driver::Result;

extern "C" {

CUresult cuInit(unsigned flags) {
  if (Forked()) return Result(Status::kForked);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return DeviceCount() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int* version) {
  *version = DriverVersion();
  return CUDA_SUCCESS;
}

// Private tables are never answered (preload/simulator/README.md).
CUresult cuGetExportTable(const void** table, const CUuuid* /*id*/) {
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
#define X(code)    \
  case code:       \
    *name = #code; \
    return CUDA_SUCCESS;
#include "cuda_error_names.inc"
#undef X
    default:
      *name = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  const char* name = nullptr;
  CUresult result = cuGetErrorName(error, &name);
  *text = result == CUDA_SUCCESS ? ErrorText(static_cast<int>(error), name) : nullptr;
  return result;
}

CUresult cuDeviceGetCount(int* count) {
  *count = Forked() ? 0 : DeviceCount();
  return Forked() ? Result(Status::kForked) : CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (DeviceAt(ordinal) == nullptr) return Result(Status::kInvalidDevice);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Result(Status::kInvalidDevice);
  if (length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, static_cast<size_t>(length), "%s", facts->name.c_str());
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Result(Status::kInvalidDevice);
  *bytes = facts->total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Result(Status::kInvalidDevice);
  std::memcpy(uuid->bytes, facts->uuid, sizeof facts->uuid);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Result(Status::kInvalidDevice);
  if (length < 13) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(text, static_cast<size_t>(length), "%s", facts->pci_bus_id);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return Result(DeviceAttribute(device, static_cast<int>(attribute), value));
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (DeviceAt(device) == nullptr || DeviceAt(peer) == nullptr) return Result(Status::kInvalidDevice);
  *can = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  Pool* found = DefaultPool(device);
  if (found == nullptr) return Result(Status::kInvalidDevice);
  *pool = reinterpret_cast<CUmemoryPool>(found);
  return CUDA_SUCCESS;
}

}  // extern "C"
