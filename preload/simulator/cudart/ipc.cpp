// Handles for other processes. Each process has its own simulated card, so memory opened from another one is
// address space without a charge, and reads as zero.
#include <unistd.h>

#include <cstring>

#include "preload/simulator/core/memory.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Fail;
using runtime::Result;

namespace {

struct MemoryToken {
  pid_t process = 0;
  uint64_t base = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(MemoryToken) <= sizeof(cudaIpcMemHandle_t));

}  // namespace

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  Range range;
  if (!FindRange(address, &range) || range.kind != RangeKind::kDevice) return Result(Status::kInvalidValue);
  MemoryToken token{getpid(), range.base, range.bytes};
  *handle = {};
  std::memcpy(handle, &token, sizeof token);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned /*flags*/) {
  MemoryToken token;
  std::memcpy(static_cast<void*>(&token), &handle, sizeof token);
  if (token.process == getpid()) return Fail(cudaErrorDeviceUninitialized);  // CUDA's answer to the exporter
  return Result(AllocateModuleMemory(CurrentDevice(), token.bytes, address));
}

cudaError_t cudaIpcCloseMemHandle(void* address) { return Result(FreeModuleMemory(address)); }

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (FindEvent(event) == nullptr) return Result(Status::kInvalidHandle);
  *handle = {};
  auto token = reinterpret_cast<uint64_t>(event);
  std::memcpy(handle, &token, sizeof token);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* handle, cudaIpcEventHandle_t /*token*/) {
  Event* event = nullptr;
  Status status = CreateEvent(cudaEventDisableTiming, &event);
  if (status == Status::kOk) *handle = reinterpret_cast<cudaEvent_t>(event);
  return Result(status);
}

}  // extern "C"
