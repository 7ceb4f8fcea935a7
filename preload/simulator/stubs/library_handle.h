#pragma once
// The part that every library handle of the simulator has: a mark, so that a stale or foreign pointer is
// refused, and the stream.

#include <cstdint>
#include <new>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/streams.h"

namespace vramtrace::simulator {

inline constexpr int kKernelNode = 0;  // cudaGraphNodeTypeKernel

// `State` is what one library keeps with a handle; `kMark` any number that no other object begins with.
template <typename State, uint64_t kMark>
class LibraryHandle {
  uint64_t mark_ = kMark;  // first: a foreign pointer is judged by its first eight bytes alone

 public:
  State state;
  void* stream = nullptr;
  int device = 0;

  // Creates the context, as the real library does, and charges what a handle costs on a real card
  // (preload/simulator/README.md, What is modelled). nullptr when the device has no room for it.
  [[nodiscard]] static LibraryHandle* Create(uint64_t charged_bytes, const char* owner) {
    const int device = CurrentDevice();
    if (EnsureContext(device) != Status::kOk) return nullptr;
    if (charged_bytes && ChargeOutside(device, charged_bytes, owner) != Status::kOk) return nullptr;
    auto* handle = new (std::nothrow) LibraryHandle;
    if (handle == nullptr) {
      if (charged_bytes) UnchargeOutside(device, charged_bytes, owner);
      return nullptr;
    }
    handle->device = device;
    handle->charged_bytes_ = charged_bytes;
    return handle;
  }

  // nullptr when the pointer is null or no such handle.
  [[nodiscard]] static LibraryHandle* From(void* pointer) {
    auto* handle = static_cast<LibraryHandle*>(pointer);
    return handle != nullptr && handle->mark_ == kMark ? handle : nullptr;
  }

  static void Destroy(LibraryHandle* handle, const char* owner) {
    if (handle->charged_bytes_) UnchargeOutside(handle->device, handle->charged_bytes_, owner);
    handle->mark_ = 0;
    delete handle;
  }

  // Work that a real library would launch on the handle's stream.
  void Launch(const char* library, const char* function) { LaunchOn(stream, library, function); }

  static void LaunchOn(void* on_stream, const char* library, const char* function) {
    CountWork(library, function);
    if (Stream* found = FindStream(on_stream)) CaptureWork(found, kKernelNode);
  }

 private:
  uint64_t charged_bytes_ = 0;
};

}  // namespace vramtrace::simulator
