#include "analyzer/nvml/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

// Drivers before 535 know the older names alone.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace vramtrace::nvml {

struct Library::Functions {
#define VRAMTRACE_NVML(field, name) decltype(&::name) field = nullptr;
#include "analyzer/nvml/functions.def"
#undef VRAMTRACE_NVML
};

namespace {

nvmlDevice_t Handle(void* handle) { return static_cast<nvmlDevice_t>(handle); }

// Asks once: `call` fills a value and returns NVML's result.
template <typename T, typename Function, typename Call>
Answer<T> Ask(const Library& library, const char* name, Function* function, Call call) {
  if (function == nullptr) return {std::nullopt, fmt::format("this driver's NVML has no {}", name)};
  T value{};
  const nvmlReturn_t result = call(&value);
  if (result != NVML_SUCCESS) return {std::nullopt, library.Why(name, result)};
  return {std::move(value), ""};
}

Answer<unsigned> AskNumber(const Library& library, const char* name,
                           nvmlReturn_t (*function)(nvmlDevice_t, unsigned*), void* device) {
  return Ask<unsigned>(library, name, function, [&](unsigned* out) { return function(Handle(device), out); });
}

Answer<double> AskWatts(const Library& library, const char* name,
                        nvmlReturn_t (*function)(nvmlDevice_t, unsigned*), void* device) {
  const Answer<unsigned> milliwatts = AskNumber(library, name, function, device);
  if (!milliwatts) return {std::nullopt, milliwatts.why};
  return {*milliwatts / 1000.0, ""};
}

Answer<std::string> AskText(const Library& library, const char* name,
                            nvmlReturn_t (*function)(nvmlDevice_t, char*, unsigned), void* device) {
  return Ask<std::string>(library, name, function, [&](std::string* out) {
    char text[256] = {};
    const nvmlReturn_t result = function(Handle(device), text, sizeof text);
    *out = text;
    return result;
  });
}

}  // namespace

Library::Library(void* handle) : handle_(handle), functions_(std::make_unique<Functions>()) {
#define VRAMTRACE_NVML(field, name) \
  functions_->field = reinterpret_cast<decltype(&::name)>(dlsym(handle_, #name));
#include "analyzer/nvml/functions.def"
#undef VRAMTRACE_NVML
}

std::unique_ptr<Library> Library::Open(std::string* why, const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *why = "NVML (libnvidia-ml.so.1) is not here: no NVIDIA driver, or a container without it";
    return nullptr;
  }
  std::unique_ptr<Library> library(new Library(handle));
  const Functions& functions = library->functions();
  if (functions.init == nullptr || functions.count == nullptr || functions.handle == nullptr) {
    *why = fmt::format("{} is no NVML that can be used", file);
    library->functions_->shutdown = nullptr;
    return nullptr;
  }
  if (const nvmlReturn_t result = functions.init(); result != NVML_SUCCESS) {
    *why = library->Why("nvmlInit_v2", result);
    library->functions_->shutdown = nullptr;
    return nullptr;
  }
  unsigned count = 0;
  if (const nvmlReturn_t result = functions.count(&count); result != NVML_SUCCESS) {
    *why = library->Why("nvmlDeviceGetCount_v2", result);
    return nullptr;
  }
  for (unsigned index = 0; index < count; ++index) {
    nvmlDevice_t device = nullptr;
    if (functions.handle(index, &device) == NVML_SUCCESS) {
      library->devices_.emplace_back(library.get(), static_cast<void*>(device));
    }
  }
  return library;
}

Library::~Library() {
  if (functions_->shutdown != nullptr) (void)functions_->shutdown();
  dlclose(handle_);
}

std::string Library::Why(const char* function, int result) const {
  const char* text =
      functions_->error_string == nullptr ? "" : functions_->error_string(static_cast<nvmlReturn_t>(result));
  return fmt::format("{} answers {} ({})", function, text == nullptr ? "" : text, result);
}

Answer<std::string> Library::DriverVersion() const {
  return Ask<std::string>(*this, "nvmlSystemGetDriverVersion", functions_->driver_version,
                          [&](std::string* out) {
                            char text[96] = {};
                            const nvmlReturn_t result = functions_->driver_version(text, sizeof text);
                            *out = text;
                            return result;
                          });
}

Answer<int> Library::CudaVersion() const {
  return Ask<int>(*this, "nvmlSystemGetCudaDriverVersion", functions_->cuda_version,
                  [&](int* out) { return functions_->cuda_version(out); });
}

Answer<std::string> Device::Name() const {
  return AskText(*library_, "nvmlDeviceGetName", library_->functions().name, handle_);
}

Answer<std::string> Device::Uuid() const {
  return AskText(*library_, "nvmlDeviceGetUUID", library_->functions().uuid, handle_);
}

Answer<std::string> Device::BusId() const {
  auto* const function = library_->functions().pci;
  return Ask<std::string>(*library_, "nvmlDeviceGetPciInfo_v3", function, [&](std::string* out) {
    nvmlPciInfo_t info{};
    const nvmlReturn_t result = function(Handle(handle_), &info);
    *out = info.busId;
    return result;
  });
}

Answer<Memory> Device::MemoryInfo() const {
  auto* const newer = library_->functions().memory2;
  if (newer != nullptr) {
    nvmlMemory_v2_t info{};
    info.version = nvmlMemory_v2;
    if (newer(Handle(handle_), &info) == NVML_SUCCESS)
      return {Memory{info.total, info.used, info.reserved}, ""};
  }
  auto* const older = library_->functions().memory;
  return Ask<Memory>(*library_, "nvmlDeviceGetMemoryInfo", older, [&](Memory* out) {
    nvmlMemory_t info{};
    const nvmlReturn_t result = older(Handle(handle_), &info);
    *out = {info.total, info.used, 0};
    return result;
  });
}

Answer<Utilization> Device::UtilizationRates() const {
  auto* const function = library_->functions().utilization;
  return Ask<Utilization>(*library_, "nvmlDeviceGetUtilizationRates", function, [&](Utilization* out) {
    nvmlUtilization_t rates{};
    const nvmlReturn_t result = function(Handle(handle_), &rates);
    *out = {rates.gpu, rates.memory};
    return result;
  });
}

Answer<unsigned> Device::Celsius() const {
  auto* const function = library_->functions().temperature;
  return Ask<unsigned>(*library_, "nvmlDeviceGetTemperature", function,
                       [&](unsigned* out) { return function(Handle(handle_), NVML_TEMPERATURE_GPU, out); });
}

Answer<double> Device::Watts() const {
  return AskWatts(*library_, "nvmlDeviceGetPowerUsage", library_->functions().power, handle_);
}

Answer<double> Device::WattsLimit() const {
  return AskWatts(*library_, "nvmlDeviceGetEnforcedPowerLimit", library_->functions().power_limit, handle_);
}

Answer<unsigned> Device::SmClock() const {
  auto* const function = library_->functions().clock;
  return Ask<unsigned>(*library_, "nvmlDeviceGetClockInfo", function,
                       [&](unsigned* out) { return function(Handle(handle_), NVML_CLOCK_SM, out); });
}

Answer<unsigned> Device::SmClockMost() const {
  auto* const function = library_->functions().clock_most;
  return Ask<unsigned>(*library_, "nvmlDeviceGetMaxClockInfo", function,
                       [&](unsigned* out) { return function(Handle(handle_), NVML_CLOCK_SM, out); });
}

Answer<uint64_t> Device::ThrottleReasons() const {
  auto* const function = library_->functions().throttle;
  return Ask<uint64_t>(*library_, "nvmlDeviceGetCurrentClocksThrottleReasons", function, [&](uint64_t* out) {
    unsigned long long bits = 0;  // NOLINT(google-runtime-int): NVML's type
    const nvmlReturn_t result = function(Handle(handle_), &bits);
    *out = bits;
    return result;
  });
}

namespace {

Answer<PcieLink> BothOf(const Answer<unsigned>& generation, const Answer<unsigned>& width) {
  if (!generation) return {std::nullopt, generation.why};
  if (!width) return {std::nullopt, width.why};
  return {PcieLink{*generation, *width}, ""};
}

}  // namespace

Answer<PcieLink> Device::LinkNow() const {
  const Library::Functions& functions = library_->functions();
  return BothOf(AskNumber(*library_, "nvmlDeviceGetCurrPcieLinkGeneration", functions.generation, handle_),
                AskNumber(*library_, "nvmlDeviceGetCurrPcieLinkWidth", functions.width, handle_));
}

Answer<PcieLink> Device::LinkMost() const {
  const Library::Functions& functions = library_->functions();
  return BothOf(
      AskNumber(*library_, "nvmlDeviceGetMaxPcieLinkGeneration", functions.generation_most, handle_),
      AskNumber(*library_, "nvmlDeviceGetMaxPcieLinkWidth", functions.width_most, handle_));
}

Answer<bool> Device::Ecc() const {
  auto* const function = library_->functions().ecc;
  return Ask<bool>(*library_, "nvmlDeviceGetEccMode", function, [&](bool* out) {
    nvmlEnableState_t now = NVML_FEATURE_DISABLED;
    nvmlEnableState_t pending = NVML_FEATURE_DISABLED;
    const nvmlReturn_t result = function(Handle(handle_), &now, &pending);
    *out = now == NVML_FEATURE_ENABLED;
    return result;
  });
}

Answer<bool> Device::Mig() const {
  auto* const function = library_->functions().mig;
  return Ask<bool>(*library_, "nvmlDeviceGetMigMode", function, [&](bool* out) {
    unsigned now = 0;
    unsigned pending = 0;
    const nvmlReturn_t result = function(Handle(handle_), &now, &pending);
    *out = now == NVML_DEVICE_MIG_ENABLE;
    return result;
  });
}

Answer<Virtualization> Device::VirtualizationMode() const {
  auto* const function = library_->functions().virtualization;
  return Ask<Virtualization>(
      *library_, "nvmlDeviceGetVirtualizationMode", function, [&](Virtualization* out) {
        nvmlGpuVirtualizationMode_t mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
        const nvmlReturn_t result = function(Handle(handle_), &mode);
        *out = mode == NVML_GPU_VIRTUALIZATION_MODE_NONE          ? Virtualization::kNone
               : mode == NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH ? Virtualization::kPassthrough
               : mode == NVML_GPU_VIRTUALIZATION_MODE_VGPU        ? Virtualization::kVirtualGpu
                                                                  : Virtualization::kHost;
        return result;
      });
}

Answer<unsigned> Device::NvLinks() const {
  auto* const function = library_->functions().nvlink;
  return Ask<unsigned>(*library_, "nvmlDeviceGetNvLinkState", function, [&](unsigned* out) {
    for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
      nvmlEnableState_t active = NVML_FEATURE_DISABLED;
      const nvmlReturn_t result = function(Handle(handle_), link, &active);
      if (link == 0 && result != NVML_SUCCESS) return result;
      if (result != NVML_SUCCESS) break;  // the card has no more of them
      *out += active == NVML_FEATURE_ENABLED ? 1U : 0U;
    }
    return NVML_SUCCESS;
  });
}

Answer<std::vector<Process>> Device::ComputeProcesses() const {
  auto* const function = library_->functions().processes;
  return Ask<std::vector<Process>>(
      *library_, "nvmlDeviceGetComputeRunningProcesses_v3", function, [&](std::vector<Process>* out) {
        std::vector<nvmlProcessInfo_t> infos(256);
        auto count = static_cast<unsigned>(infos.size());
        const nvmlReturn_t result = function(Handle(handle_), &count, infos.data());
        for (unsigned i = 0; result == NVML_SUCCESS && i < count; ++i) {
          // NVML_VALUE_NOT_AVAILABLE is all ones.
          const bool told = infos[i].usedGpuMemory != ~0ULL;
          out->push_back(
              {infos[i].pid, told ? std::optional<uint64_t>(infos[i].usedGpuMemory) : std::nullopt});
        }
        return result;
      });
}

bool IsSimulated(const Device& device) {
  // The simulated device's UUID spells "vramtrace-sim" (preload/simulator/core/device.cpp).
  return device.Uuid().Or("").starts_with("GPU-7672616d-7472-6163-652d-73696d");
}

}  // namespace vramtrace::nvml
