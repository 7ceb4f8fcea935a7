#include "preload/simulator/core/virtual_memory.h"

#include "preload/simulator/core/log.h"
#include "preload/simulator/cuda/driver.h"

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::driver;

namespace {

Location PlaceOf(const CUmemAllocationProp& properties) {
  return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? Location::kDevice : Location::kHost;
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags /*option*/) {
  if (PlaceOf(*properties) == Location::kDevice && DeviceAt(properties->location.id) == nullptr) {
    return Result(Status::kInvalidDevice);
  }
  *bytes = kPhysicalGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long /*flags*/) {
  uint64_t reserved = 0;
  Status status = ReserveAddresses(bytes, alignment, hint, &reserved);
  if (status == Status::kOk) *address = reserved;
  return Result(status);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return Result(ReleaseAddresses(address, bytes));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long /*flags*/) {
  Location location = PlaceOf(*properties);
  int device = location == Location::kDevice ? properties->location.id : CurrentDevice();
  uint64_t made = 0;
  Status status = CreatePhysical(location, device, bytes, &made);
  if (status == Status::kOk) *handle = made;
  return Result(status);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) { return Result(ReleasePhysical(handle)); }

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long /*flags*/) {
  return Result(Map(address, bytes, offset, handle));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) { return Result(Unmap(address, bytes)); }

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* /*access*/,
                        size_t /*count*/) {
  return Result(SetAccess(address, bytes));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  uint64_t found = 0;
  Status status = RetainPhysical(reinterpret_cast<uint64_t>(address), &found);
  if (status == Status::kOk) *handle = found;
  return Result(status);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  Location location = Location::kDevice;
  int device = 0;
  uint64_t bytes = 0;
  Status status = PhysicalProperties(handle, &location, &device, &bytes);
  if (status != Status::kOk) return Result(status);
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location.type =
      location == Location::kDevice ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
  properties->location.id = device;
  return CUDA_SUCCESS;
}

// Sharing with other processes: PyTorch insists on finding both functions, and uses them for IPC alone.
CUresult cuMemExportToShareableHandle(void* /*shareable*/, CUmemGenericAllocationHandle /*handle*/,
                                      CUmemAllocationHandleType /*type*/, unsigned long long /*flags*/) {
  vramtrace_sim_unsupported("libcuda.so.1", "cuMemExportToShareableHandle");
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* /*handle*/, void* /*shareable*/,
                                        CUmemAllocationHandleType /*type*/) {
  vramtrace_sim_unsupported("libcuda.so.1", "cuMemImportFromShareableHandle");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // extern "C"
