// The management library: what PyTorch, monitors and training scripts ask of a card that is there and idle.
// NVML sees the machine's devices whatever CUDA_VISIBLE_DEVICES says.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "preload/simulator/core/memory.h"
#include "preload/simulator/nvml/handles.h"

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::nvml;

namespace {

constexpr const char* kDriverRelease = "580.00";

// Bytes in use on a device of the machine: this process's, and another tenant's where a scenario has one. A
// context counts the tenant already, being refused what is gone.
uint64_t UsedBytes(const Device& device) {
  for (int i = 0; i < DeviceCount(); ++i) {
    if (std::memcmp(DeviceAt(i)->uuid, device.uuid, sizeof device.uuid) != 0) continue;
    if (HasContext(i)) return PeekMemory(i).used_bytes;
  }
  return device.other_tenant_bytes;
}

uint64_t OwnBytes(const Device& device) { return UsedBytes(device) - device.other_tenant_bytes; }

// The process id of the tenant that a scenario has: init's, which is never this one's.
constexpr unsigned kTenantProcess = 1;

template <class Info>
nvmlReturn_t Processes(nvmlDevice_t handle, unsigned* count, Info* infos,
                       void (*fill)(Info&, unsigned, uint64_t)) {
  return With(handle, [&](const Device& device) {
    unsigned room = *count;
    const bool own = OwnBytes(device) > 0;
    const bool tenant = device.other_tenant_bytes > 0;
    *count = (own ? 1U : 0U) + (tenant ? 1U : 0U);
    if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (own) fill(infos[0], static_cast<unsigned>(getpid()), OwnBytes(device));
    if (tenant) fill(infos[own ? 1 : 0], kTenantProcess, device.other_tenant_bytes);
    return NVML_SUCCESS;
  });
}

void FillProcess(nvmlProcessInfo_t& info, unsigned process, uint64_t bytes) {
  info.pid = process;
  info.usedGpuMemory = bytes;
  info.gpuInstanceId = 0xffffffff;
  info.computeInstanceId = 0xffffffff;
}

void FillProcessV1(nvmlProcessInfo_v1_t& info, unsigned process, uint64_t bytes) {
  info.pid = process;
  info.usedGpuMemory = bytes;
}

void FillPci(nvmlPciInfo_t& pci, const Device& device) {
  pci = {};
  std::snprintf(pci.busId, sizeof pci.busId, "0000%s", device.pci_bus_id);
  std::snprintf(pci.busIdLegacy, sizeof pci.busIdLegacy, "%s", device.pci_bus_id);
  unsigned domain = 0;
  std::sscanf(device.pci_bus_id, "%x:%x:%x", &domain, &pci.bus, &pci.device);
  pci.domain = domain;
}

// 0000:01:00.0 and 00000000:01:00.0 are the same device.
bool SameBus(const char* text, const Device& device) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  nvmlPciInfo_t pci;
  FillPci(pci, device);
  return std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3 && domain == pci.domain && bus == pci.bus &&
         slot == pci.device;
}

// A slice or a limit is not what the driver keeps: then the catalogue's share is.
uint64_t ReservedBytes(const Device& device) {
  const Scenario scenario = Now(device);
  if (scenario.mig.empty() && !scenario.limiter) return device.nvml_total_bytes - device.total_bytes;
  return device.nvml_total_bytes / 100;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  const std::string how = ScenarioOf(0).nvml;
  if (how == "no_permission") return NVML_ERROR_NO_PERMISSION;
  if (how == "absent") return NVML_ERROR_LIBRARY_NOT_FOUND;
  return PhysicalDeviceCount() > 0 ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}
nvmlReturn_t nvmlInit() { return nvmlInit_v2(); }
nvmlReturn_t nvmlInitWithFlags(unsigned /*flags*/) { return nvmlInit_v2(); }
nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "The operation was successful";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "NVML Shared Library Not Found";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return Write(text, length, kDriverRelease);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  return Write(text, length, std::to_string(DriverVersion() / 1000) + "." + kDriverRelease);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  *version = DriverVersion();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(PhysicalDeviceCount());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* handle) {
  const Device* device = PhysicalDeviceAt(static_cast<int>(index));
  if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *handle = Handle(device);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* text, nvmlDevice_t* handle) {
  for (int i = 0; i < PhysicalDeviceCount(); ++i) {
    if (!SameBus(text, *PhysicalDeviceAt(i))) continue;
    *handle = Handle(PhysicalDeviceAt(i));
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* text, nvmlDevice_t* handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, handle);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* handle) {
  for (int i = 0; i < PhysicalDeviceCount(); ++i) {
    if (UuidText(*PhysicalDeviceAt(i)) != uuid) continue;
    *handle = Handle(PhysicalDeviceAt(i));
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* index) {
  return With(handle, [&](const Device& device) {
    *index = static_cast<unsigned>(device.index);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned* number) {
  return nvmlDeviceGetIndex(handle, number);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char* name, unsigned length) {
  return With(handle, [&](const Device& device) { return Write(name, length, device.name); });
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char* uuid, unsigned length) {
  return With(handle, [&](const Device& device) { return Write(uuid, length, UuidText(device)); });
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t* pci) {
  return With(handle, [&](const Device& device) {
    FillPci(*pci, device);
    return NVML_SUCCESS;
  });
}

// Version 1 knows no reserve: what the driver keeps counts as used.
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t* memory) {
  return With(handle, [&](const Device& device) {
    memory->total = device.nvml_total_bytes;
    memory->used = ReservedBytes(device) + UsedBytes(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t* memory) {
  return With(handle, [&](const Device& device) {
    memory->total = device.nvml_total_bytes;
    memory->reserved = ReservedBytes(device);
    memory->used = UsedBytes(device);
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int* major, int* minor) {
  return With(handle, [&](const Device& device) {
    *major = device.gpu->compute_major;
    *minor = device.gpu->compute_minor;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned* count,
                                                     nvmlProcessInfo_t* infos) {
  return Processes(handle, count, infos, FillProcess);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t handle, unsigned* count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return Processes(handle, count, reinterpret_cast<nvmlProcessInfo_t*>(infos), FillProcess);
}

// The first version's structure is shorter: no instance ids.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return Processes(handle, count, infos, FillProcessV1);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned* count,
                                                      nvmlProcessInfo_t* /*infos*/) {
  return Set(handle, count, 0);
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned* bits) {
  return With(handle, [&](const Device& device) { return Set(handle, bits, device.gpu->bus_width_bits); });
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t* mode) {
  return Set(handle, mode, NVML_FEATURE_ENABLED);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t* mode) {
  return Set(handle, mode, NVML_COMPUTEMODE_DEFAULT);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t* state) {
  return Set(handle, state, NVML_PSTATE_0);
}

// A card outside any fabric. PyTorch warns when the question fails.
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, nvmlGpuFabricInfoV_t* info) {
  return With(handle, [&](const Device&) {
    if (info->version != nvmlGpuFabricInfo_v2 && info->version != nvmlGpuFabricInfo_v3) {
      return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    unsigned version = info->version;
    size_t bytes = version == nvmlGpuFabricInfo_v2 ? sizeof(nvmlGpuFabricInfo_v2_t) : sizeof *info;
    std::memset(static_cast<void*>(info), 0, bytes);
    info->version = version;
    info->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return NVML_SUCCESS;
  });
}

}  // extern "C"
