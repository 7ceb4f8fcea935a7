#include <mutex>
#include <set>
#include <vector>

#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/streams.h"
#include "preload/simulator/cuda/driver.h"

namespace vramtrace::simulator::driver {
namespace {

struct Contexts {
  std::mutex mutex;
  std::vector<Context*> primary;  // by device
  std::set<Context*> all;
};

Contexts& TheContexts() {
  static auto* contexts = [] {
    auto* made = new Contexts;
    for (int device = 0; device < DeviceCount(); ++device) {
      made->primary.push_back(new Context{device, true});
      made->all.insert(made->primary.back());
    }
    return made;
  }();
  return *contexts;
}

// What cuCtxPushCurrent saved. The context below is the current device's primary one.
thread_local std::vector<CUcontext> pushed;

}  // namespace

CUcontext PrimaryContext(int device) {
  return reinterpret_cast<CUcontext>(TheContexts().primary.at(static_cast<size_t>(device)));
}

Context* FindContext(CUcontext handle) {
  Contexts& contexts = TheContexts();
  std::lock_guard lock(contexts.mutex);
  auto* context = reinterpret_cast<Context*>(handle);
  return contexts.all.count(context) != 0 ? context : nullptr;
}

}  // namespace vramtrace::simulator::driver

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::driver;

namespace {

constexpr const char* kOwner = "cuCtxCreate";

CUcontext Current() {
  if (!pushed.empty()) return pushed.back();
  return HasContext(CurrentDevice()) ? PrimaryContext(CurrentDevice()) : nullptr;
}

}  // namespace

extern "C" {

CUresult cuCtxCreate(CUcontext* handle, CUctxCreateParams* /*parameters*/, unsigned /*flags*/,
                     CUdevice device) {
  if (Status status = EnsureContext(device); status != Status::kOk) return Result(status);
  Status status = ChargeOutside(device, DeviceAt(device)->context_bytes, kOwner);
  if (status != Status::kOk) return Result(status);
  auto* context = new Context{device, false};
  {
    Contexts& contexts = TheContexts();
    std::lock_guard lock(contexts.mutex);
    contexts.all.insert(context);
  }
  *handle = reinterpret_cast<CUcontext>(context);
  return cuCtxPushCurrent(*handle);
}

CUresult cuCtxDestroy(CUcontext handle) {
  Context* context = FindContext(handle);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  UnchargeOutside(context->device, DeviceAt(context->device)->context_bytes, kOwner);
  std::erase(pushed, handle);
  Contexts& contexts = TheContexts();
  std::lock_guard lock(contexts.mutex);
  contexts.all.erase(context);
  delete context;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  if (Status status = EnsureContext(device); status != Status::kOk) return Result(status);
  *handle = PrimaryContext(device);
  return CUDA_SUCCESS;
}

// The context stays until the process ends, as it does while the runtime uses it.
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return HasContext(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (DeviceAt(device) == nullptr) return Result(Status::kInvalidDevice);
  if (flags != nullptr) *flags = 0;
  *active = HasContext(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned /*flags*/) {
  return DeviceAt(device) == nullptr ? Result(Status::kInvalidDevice) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  *handle = Current();
  return Forked() ? Result(Status::kForked) : CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  if (!pushed.empty()) pushed.pop_back();
  if (handle == nullptr) return CUDA_SUCCESS;
  Context* context = FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!pushed.empty() || !context->primary) pushed.push_back(handle);
  return Result(SetCurrentDevice(context->device));
}

CUresult cuCtxPushCurrent(CUcontext handle) {
  Context* context = FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (pushed.empty() && HasContext(CurrentDevice())) pushed.push_back(PrimaryContext(CurrentDevice()));
  pushed.push_back(handle);
  return Result(SetCurrentDevice(context->device));
}

CUresult cuCtxPopCurrent(CUcontext* handle) {
  if (pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle != nullptr) *handle = pushed.back();
  pushed.pop_back();
  if (pushed.empty()) return CUDA_SUCCESS;
  int device = FindContext(pushed.back())->device;
  if (pushed.size() == 1) pushed.pop_back();  // what lay below the first push
  return Result(SetCurrentDevice(device));
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = CurrentDevice();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  if (FindContext(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  if (lowest != nullptr) *lowest = kLowestStreamPriority;
  if (highest != nullptr) *highest = kHighestStreamPriority;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  Synchronised(CurrentDevice());
  return Forked() ? Result(Status::kForked) : CUDA_SUCCESS;
}

}  // extern "C"
