// What changes while a card works: utilisation, heat, power, clocks, link; and the modes that a scenario
// sets.
#include <cstdio>

#include "preload/simulator/nvml/handles.h"

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::nvml;

namespace {

constexpr unsigned kIdleCelsius = 30;
constexpr unsigned kIdleWatts = 50;

// "4.0 x16" -> 4, 16
void PcieLink(const Device& device, unsigned* generation, unsigned* width) {
  float number = 0;
  *width = 16;
  std::sscanf(std::string(device.gpu->pcie).c_str(), "%f x%u", &number, width);
  *generation = static_cast<unsigned>(number);
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t* rates) {
  return With(handle, [&](const Device& device) {
    // Kernels do nothing; a scenario says otherwise.
    const Scenario scenario = Now(device);
    rates->gpu = static_cast<unsigned>(scenario.utilization.value_or(0));
    rates->memory = static_cast<unsigned>(scenario.memory_utilization.value_or(0));
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t /*sensor*/,
                                      unsigned* degrees) {
  return With(handle, [&](const Device& device) {
    return Set(handle, degrees, Now(device).temperature.value_or(kIdleCelsius));
  });
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned* milliwatts) {
  return With(handle, [&](const Device& device) {
    return Set(handle, milliwatts, Now(device).power.value_or(kIdleWatts) * 1000);
  });
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned* milliwatts) {
  return With(handle, [&](const Device& device) {
    return Set(handle, milliwatts, Now(device).power_limit.value_or(device.gpu->power_watts) * 1000);
  });
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
  return With(handle, [&](const Device& device) {
    const Scenario scenario = Now(device);
    const auto& now = type == NVML_CLOCK_MEM ? scenario.memory_clock : scenario.sm_clock;
    return now ? Set(handle, megahertz, *now) : nvmlDeviceGetMaxClockInfo(handle, type, megahertz);
  });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long* reasons) {
  return With(handle, [&](const Device& device) { return Set(handle, reasons, ThrottleBits(Now(device))); });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(handle, reasons);
}

// A card whose catalogue row has no ECC to switch says so, as GeForce cards do.
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, nvmlEnableState_t* now, nvmlEnableState_t* pending) {
  return With(handle, [&](const Device& device) {
    const auto ecc = Now(device).ecc;
    if (!ecc) return NVML_ERROR_NOT_SUPPORTED;
    *now = *pending = *ecc > 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned* now, unsigned* pending) {
  return With(handle, [&](const Device& device) {
    *now = *pending = Now(device).mig.empty() ? NVML_DEVICE_MIG_DISABLE : NVML_DEVICE_MIG_ENABLE;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle, nvmlGpuVirtualizationMode_t* mode) {
  return With(handle, [&](const Device& device) {
    *mode = Now(device).vgpu.value_or(0) > 0 ? NVML_GPU_VIRTUALIZATION_MODE_VGPU
                                             : NVML_GPU_VIRTUALIZATION_MODE_NONE;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned link, nvmlEnableState_t* active) {
  return With(handle, [&](const Device& device) {
    const auto links = Now(device).nvlinks;
    if (!links) return NVML_ERROR_NOT_SUPPORTED;
    if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    *active = link < *links ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  unsigned width = 0;
  return With(handle, [&](const Device& device) {
    PcieLink(device, generation, &width);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle, unsigned* generation) {
  return With(handle, [&](const Device& device) {
    const auto now = Now(device).pcie_generation;
    return now ? Set(handle, generation, *now) : nvmlDeviceGetMaxPcieLinkGeneration(handle, generation);
  });
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle, unsigned* width) {
  unsigned generation = 0;
  return With(handle, [&](const Device& device) {
    PcieLink(device, &generation, width);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle, unsigned* width) {
  return With(handle, [&](const Device& device) {
    const auto now = Now(device).pcie_width;
    return now ? Set(handle, width, *now) : nvmlDeviceGetMaxPcieLinkWidth(handle, width);
  });
}

}  // extern "C"
