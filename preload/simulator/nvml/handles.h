#pragma once
// What every function of the stand-in does first: from a handle to a device, and its scenario now.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <cstring>
#include <string>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/scenario.h"

namespace vramtrace::simulator::nvml {

inline const Device* Find(nvmlDevice_t handle) {
  for (int i = 0; i < PhysicalDeviceCount(); ++i) {
    if (reinterpret_cast<const void*>(handle) == PhysicalDeviceAt(i)) return PhysicalDeviceAt(i);
  }
  return nullptr;
}

inline nvmlDevice_t Handle(const Device* device) {
  return reinterpret_cast<nvmlDevice_t>(const_cast<Device*>(device));
}

inline nvmlReturn_t Write(char* out, unsigned length, const std::string& text) {
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

inline Scenario Now(const Device& device) { return ScenarioOf(device.physical); }

}  // namespace vramtrace::simulator::nvml
