#pragma once
// What a hook may call. The recorder behind it knows nothing of CUDA, PyTorch or the hooks; the hooks know
// nothing of files. Nothing here throws, allocates with malloc, takes the GIL or holds a lock over a call
// into the program. Everything may be called from any thread, also while the process exits or after fork.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "preload/recorder/stacks/python_frames.h"

namespace vramtrace::record {

// A stack as the hook captured it. Python frames come first (innermost first), native frames below.
struct CapturedStack {
  const stacks::PythonFrame* python = nullptr;
  int python_count = 0;
  bool python_truncated = false;
  void* const* native = nullptr;
  int native_count = 0;
};

// Position of the autograd engine. `operator_name` is nullptr in forward; it is a string that lives as long
// as the process (typeid(...).name()), so that its address is a key.
struct AutogradPosition {
  uint64_t sequence_number = 0;
  const char* operator_name = nullptr;
  uint64_t node_thread = 0;
};

struct BlockEvent {
  uint32_t device = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t requested = 0;  // allocation only, 0 when not known
  uint64_t allocated_total = 0;
  uint64_t reserved_total = 0;
  AutogradPosition autograd{};
};

enum class MemoryKind : uint32_t { kDevice, kManaged, kPool, kPhysical, kImported, kArray, kGraph };

struct DriverEvent {
  const char* function = nullptr;  // static string: cudaMalloc
  const void* caller = nullptr;    // return address into the calling library
  uint32_t device = 0;
  uint64_t address = 0;  // or the handle, for kPhysical
  uint64_t bytes = 0;    // allocation only
  MemoryKind kind = MemoryKind::kDevice;
  uint32_t result = 0;
  uint64_t stream = 0;
  uint64_t duration_ns = 0;
};

enum class QueryReason : uint32_t {
  kProgram,
  kContext,
  kDriverAllocate,
  kOutOfMemory,
  kStep,
  kExit,
  kDriverFree,
};

enum class LabelKind : uint32_t { kUnknown, kParameter, kBuffer, kGradient, kOptimizerState, kInput };

struct LabelEvent {
  LabelKind kind = LabelKind::kUnknown;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  std::string_view name{};
  std::string_view state_key{};
  std::string_view dtype{};
  const int64_t* shape = nullptr;
  int shape_count = 0;
};

struct InputTensorEvent {
  std::string_view name{};
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string_view dtype{};
  const int64_t* shape = nullptr;
  int shape_count = 0;
  uint64_t step = 0;
  bool on_device = false;
  uint64_t module_object = 0;
};

// False: recording is off (never started, failed open, forked child, ended). Cheap: one relaxed load.
[[nodiscard]] bool Recording() noexcept;

// Opens the trace file at the first event of a process; true when events can be written. The hooks call it
// before the first real CUDA event; a process without CUDA never opens a file.
bool EnsureOpen() noexcept;

void BlockAllocated(const BlockEvent& event, const CapturedStack& stack) noexcept;
void BlockFreed(const BlockEvent& event, const CapturedStack& stack) noexcept;
void OutOfMemory(const BlockEvent& event, const CapturedStack& stack) noexcept;  // bytes = the request

void DriverAllocated(const DriverEvent& event, const CapturedStack& stack) noexcept;
void DriverFreed(const DriverEvent& event, const CapturedStack& stack) noexcept;
void HostAllocated(const DriverEvent& event, const CapturedStack& stack) noexcept;
void HostFreed(const DriverEvent& event, const CapturedStack& stack) noexcept;
void Mapped(uint32_t device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset) noexcept;
void Unmapped(uint32_t device, uint64_t address, uint64_t bytes) noexcept;

void DeviceMemory(uint32_t device, uint64_t free_bytes, uint64_t total_bytes, QueryReason reason) noexcept;
void ContextChanged(uint32_t device, uint64_t context, bool destroyed) noexcept;

struct DeviceDescription {
  uint32_t device = 0;
  std::string_view name{};
  uint64_t total_bytes = 0;
  uint32_t compute_major = 0;
  uint32_t compute_minor = 0;
  uint32_t multiprocessors = 0;
  std::string_view uuid{};
};
void DeviceDescribed(const DeviceDescription& device) noexcept;

void Labelled(const LabelEvent& event) noexcept;
void InputSeen(const InputTensorEvent& event) noexcept;
void ModuleNamed(uint64_t object, uint64_t parent, std::string_view path,
                 std::string_view class_name) noexcept;
void StepMarked(uint64_t number, bool end, std::string_view optimizer, uint64_t optimizer_object) noexcept;
void PhaseMarked(std::string_view name, bool end) noexcept;

// Versions become known after start; fields merge into the Process packet.
struct ProcessFacts {
  std::string_view python_version{};
  std::string_view torch_version{};
  std::string_view driver_version{};
  std::string_view cuda_runtime_version{};
  int simulated = -1;  // -1: not known
};
void ProcessLearned(const ProcessFacts& facts) noexcept;

// A row of the table of internals: on or off, and why.
void FeatureSet(std::string_view name, bool on, std::string_view reason) noexcept;

// Ends the trace in order: for a process that is about to leave without its exit handlers. Nothing is
// recorded afterwards.
void EndRecording() noexcept;

// Switches recording off for good: one line on stderr with the remedy, the program goes on.
void FailOpen(std::string_view what, std::string_view remedy) noexcept;

}  // namespace vramtrace::record
