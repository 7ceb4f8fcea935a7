#include "preload/recorder/hooks/device_facts.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/recorder/hooks/call_scope.h"
#include "preload/recorder/hooks/declarations.h"
#include "preload/recorder/hooks/real_functions.h"
#include "preload/recorder/hooks/trace_session.h"

namespace vramtrace::hooks {
namespace {

constexpr uint32_t kMaxDevices = 64;
std::atomic<bool> g_met[kMaxDevices];
std::atomic<bool> g_met_any{false};
// The functions that answered last: for questions from code that no CUDA library has called.
std::atomic<decltype(&cudaMemGetInfo)> g_runtime_query{nullptr};
std::atomic<decltype(&cuMemGetInfo_v2)> g_driver_query{nullptr};

// Lets a query through while a stream is being captured: CUDA's own documented way, restored at the end.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const void* caller) noexcept
      : exchange_(RealOf("cudaThreadExchangeStreamCaptureMode", Family::kRuntime,
                         &cudaThreadExchangeStreamCaptureMode, caller)) {
    if (exchange_ != nullptr) exchange_(&mode_);
  }
  ~RelaxedCapture() {
    if (exchange_ != nullptr) exchange_(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  decltype(&cudaThreadExchangeStreamCaptureMode) exchange_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

bool AskRuntime(const void* caller, size_t* free_bytes, size_t* total_bytes) {
  auto query = RealOf(Hook::cudaMemGetInfo, &cudaMemGetInfo, caller);
  if (query == nullptr) query = g_runtime_query.load(std::memory_order_acquire);
  if (query == nullptr) return false;
  auto peek = RealOf("cudaPeekAtLastError", Family::kRuntime, &cudaPeekAtLastError, caller);
  if (peek == nullptr || peek() != cudaSuccess) return false;  // never disturb the program's pending error
  const RelaxedCapture relaxed(caller);
  if (query(free_bytes, total_bytes) == cudaSuccess) {
    g_runtime_query.store(query, std::memory_order_release);
    return true;
  }
  if (auto clear = RealOf("cudaGetLastError", Family::kRuntime, &cudaGetLastError, caller)) (void)clear();
  return false;
}

bool AskDriver(const void* caller, size_t* free_bytes, size_t* total_bytes) {
  auto query = RealOf(Hook::cuMemGetInfo_v2, &cuMemGetInfo_v2, caller);
  if (query == nullptr) query = g_driver_query.load(std::memory_order_acquire);
  if (query == nullptr || query(free_bytes, total_bytes) != CUDA_SUCCESS) return false;
  g_driver_query.store(query, std::memory_order_release);
  return true;
}

bool Ask(Family family, const void* caller, size_t* free_bytes, size_t* total_bytes) {
  const CallScope scope;  // the real query may cross other hooks of ours
  return family == Family::kDriver ? AskDriver(caller, free_bytes, total_bytes)
                                   : AskRuntime(caller, free_bytes, total_bytes);
}

template <typename Function>
Function* Driver(const char* symbol, Function* type, const void* caller) {
  return RealOf(symbol, Family::kDriver, type, caller);
}

void FormatUuid(const CUuuid& uuid, char (&text)[48]) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(uuid.bytes);
  int used = std::snprintf(text, sizeof text, "GPU-");
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    used += std::snprintf(text + used, sizeof text - used, dash ? "-%02x" : "%02x", bytes[i]);
  }
}

// By the driver's functions: their ABI is frozen, cudaDeviceProp's differs between majors.
void DescribeDevice(uint32_t device, uint64_t total_bytes, const void* caller) {
  const CallScope scope;
  record::DeviceDescription description;
  description.device = device;
  description.total_bytes = total_bytes;
  char name[256] = "";
  char uuid_text[48] = "";
  CUdevice handle = 0;
  auto get = Driver("cuDeviceGet", &cuDeviceGet, caller);
  if (get != nullptr && get(&handle, static_cast<int>(device)) == CUDA_SUCCESS) {
    if (auto ask = Driver("cuDeviceGetName", &cuDeviceGetName, caller)) ask(name, sizeof name, handle);
    auto attribute = Driver("cuDeviceGetAttribute", &cuDeviceGetAttribute, caller);
    const auto read = [&](CUdevice_attribute which) {
      int value = 0;
      if (attribute != nullptr) attribute(&value, which, handle);
      return static_cast<uint32_t>(value);
    };
    description.compute_major = read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    description.compute_minor = read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    description.multiprocessors = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    CUuuid uuid{};
    auto ask_uuid = RealOf("cuDeviceGetUuid_v2", Family::kDriver,
                           static_cast<CUresult (*)(CUuuid*, CUdevice)>(nullptr), caller);
    if (ask_uuid != nullptr && ask_uuid(&uuid, handle) == CUDA_SUCCESS) FormatUuid(uuid, uuid_text);
  }
  description.name = name;
  description.uuid = uuid_text;
  record::DeviceDescribed(description);
}

void LearnVersions(const void* caller) {
  const CallScope scope;
  char driver[16] = "";
  char runtime[16] = "";
  int version = 0;
  const auto format = [&version](char(&text)[16]) {
    std::snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
  };
  auto driver_version = Driver("cuDriverGetVersion", &cuDriverGetVersion, caller);
  if (driver_version != nullptr && driver_version(&version) == CUDA_SUCCESS) format(driver);
  auto runtime_version = RealOf("cudaRuntimeGetVersion", Family::kRuntime, &cudaRuntimeGetVersion, caller);
  if (runtime_version != nullptr && runtime_version(&version) == cudaSuccess) format(runtime);
  record::ProcessFacts facts;
  facts.driver_version = driver;
  facts.cuda_runtime_version = runtime;
  record::ProcessLearned(facts);
}

}  // namespace

uint32_t CurrentDevice(Family family, const void* caller) noexcept {
  const CallScope scope;
  if (family == Family::kDriver) {
    CUdevice device = 0;
    auto get = Driver("cuCtxGetDevice", &cuCtxGetDevice, caller);
    return get != nullptr && get(&device) == CUDA_SUCCESS ? static_cast<uint32_t>(device) : 0;
  }
  int device = 0;
  auto get = RealOf("cudaGetDevice", Family::kRuntime, &cudaGetDevice, caller);
  return get != nullptr && get(&device) == cudaSuccess ? static_cast<uint32_t>(device) : 0;
}

void QueryDeviceMemory(Family family, const void* caller, record::QueryReason reason) noexcept {
  const KeepErrno keep;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (!record::Recording() || !Ask(family, caller, &free_bytes, &total_bytes)) return;
  record::DeviceMemory(CurrentDevice(family, caller), free_bytes, total_bytes, reason);
}

void MeetDevice(Family family, const void* caller) noexcept {
  const KeepErrno keep;
  const uint32_t device = CurrentDevice(family, caller);
  if (device >= kMaxDevices || g_met[device].load(std::memory_order_acquire)) return;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (!Ask(family, caller, &free_bytes, &total_bytes) || !OpenTrace()) return;
  if (g_met[device].exchange(true, std::memory_order_acq_rel)) return;
  if (!g_met_any.exchange(true, std::memory_order_acq_rel)) LearnVersions(caller);
  DescribeDevice(device, total_bytes, caller);
  CUcontext context = nullptr;
  if (auto current = Driver("cuCtxGetCurrent", &cuCtxGetCurrent, caller)) (void)current(&context);
  record::ContextChanged(device, reinterpret_cast<uintptr_t>(context), /*destroyed=*/false);
  record::DeviceMemory(device, free_bytes, total_bytes, record::QueryReason::kContext);
}

bool HasMetDevice() noexcept { return g_met_any.load(std::memory_order_acquire); }

}  // namespace vramtrace::hooks
