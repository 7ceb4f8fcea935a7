// The management library: what PyTorch, monitors and training scripts ask of a card that is there and idle.
// NVML sees the machine's devices whatever CUDA_VISIBLE_DEVICES says.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"

using namespace vramtrace::simulator;

namespace {

constexpr unsigned kIdleCelsius = 30;
constexpr unsigned kIdleMilliwatts = 50000;
constexpr const char* kDriverRelease = "580.00";

const Device* Find(nvmlDevice_t handle) {
  for (int i = 0; i < PhysicalDeviceCount(); ++i) {
    if (reinterpret_cast<const void*>(handle) == PhysicalDeviceAt(i)) return PhysicalDeviceAt(i);
  }
  return nullptr;
}

nvmlDevice_t Handle(const Device* device) {
  return reinterpret_cast<nvmlDevice_t>(const_cast<Device*>(device));
}

nvmlReturn_t Write(char* out, unsigned length, const std::string& text) {
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

template <class T, class V>
nvmlReturn_t Set(nvmlDevice_t handle, T* out, V value) {
  if (Find(handle) == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<T>(value);
  return NVML_SUCCESS;
}

template <class Use>
nvmlReturn_t With(nvmlDevice_t handle, Use use) {
  const Device* device = Find(handle);
  return device == nullptr ? NVML_ERROR_INVALID_ARGUMENT : use(*device);
}

// Bytes this process uses on a device of the machine; other processes have cards of their own here.
uint64_t UsedBytes(const Device& device) {
  for (int i = 0; i < DeviceCount(); ++i) {
    if (std::memcmp(DeviceAt(i)->uuid, device.uuid, sizeof device.uuid) == 0) return PeekMemory(i).used_bytes;
  }
  return 0;
}

bool HasProcess(const Device& device) { return UsedBytes(device) > 0; }

// "4.0 x16" -> 4, 16
void PcieLink(const Device& device, unsigned* generation, unsigned* width) {
  float number = 0;
  *width = 16;
  std::sscanf(std::string(device.gpu->pcie).c_str(), "%f x%u", &number, width);
  *generation = static_cast<unsigned>(number);
}

template <class Info>
nvmlReturn_t Processes(nvmlDevice_t handle, unsigned* count, Info* infos, void (*fill)(Info&, uint64_t)) {
  return With(handle, [&](const Device& device) {
    unsigned room = *count;
    *count = HasProcess(device) ? 1 : 0;
    if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (*count == 1) fill(infos[0], UsedBytes(device));
    return NVML_SUCCESS;
  });
}

void FillProcess(nvmlProcessInfo_t& info, uint64_t bytes) {
  info.pid = static_cast<unsigned>(getpid());
  info.usedGpuMemory = bytes;
  info.gpuInstanceId = 0xffffffff;
  info.computeInstanceId = 0xffffffff;
}

void FillProcessV1(nvmlProcessInfo_v1_t& info, uint64_t bytes) {
  info.pid = static_cast<unsigned>(getpid());
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

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() { return PhysicalDeviceCount() > 0 ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED; }
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
  return With(handle, [&](const Device& device) {
    return Write(name, length, std::string(device.gpu->device_name));
  });
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
    memory->used = device.nvml_total_bytes - device.total_bytes + UsedBytes(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t* memory) {
  return With(handle, [&](const Device& device) {
    memory->total = device.nvml_total_bytes;
    memory->reserved = device.nvml_total_bytes - device.total_bytes;
    memory->used = UsedBytes(device);
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t* rates) {
  return With(handle, [&](const Device&) {
    *rates = {};  // kernels do nothing
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

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t /*sensor*/,
                                      unsigned* degrees) {
  return Set(handle, degrees, kIdleCelsius);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned* milliwatts) {
  return Set(handle, milliwatts, kIdleMilliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned* milliwatts) {
  return With(handle,
              [&](const Device& device) { return Set(handle, milliwatts, device.gpu->power_watts * 1000); });
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(handle, milliwatts);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, nvmlClockType_t type, unsigned* megahertz) {
  return With(handle, [&](const Device& device) {
    bool memory = type == NVML_CLOCK_MEM;
    return Set(handle, megahertz, memory ? device.gpu->memory_clock_mhz : device.gpu->clock_mhz);
  });
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, nvmlClockType_t type, unsigned* megahertz) {
  return nvmlDeviceGetMaxClockInfo(handle, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  unsigned width = 0;
  return With(handle, [&](const Device& device) {
    PcieLink(device, generation, &width);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  return nvmlDeviceGetMaxPcieLinkGeneration(handle, generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle, unsigned* width) {
  unsigned generation = 0;
  return With(handle, [&](const Device& device) {
    PcieLink(device, &generation, width);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle, unsigned* width) {
  return nvmlDeviceGetMaxPcieLinkWidth(handle, width);
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
