#pragma once
// What a run says at its end: peaks, refusals, what was not simulated. README.md documents the file.

#include <cstdint>

namespace vramtrace::simulator::report {

enum class Count : int {
  kAllocations,
  kFrees,
  kLaunches,
  kGraphLaunches,
  kHostToDeviceCopies,
  kHostToDeviceBytes,
  kUnstoredCopies,  // larger than the limit: what they carried is lost
  kUnstoredBytes,
  kDeviceToHostCopies,
  kDeviceToHostBytes,
  kInventedReads,  // device-to-host copies of bytes that no copy or fill had stored
  kInventedBytes,
  kDeviceToDeviceCopies,
  kFills,
  kPhysicalCreated,
  kMappings,
  kManagedBytes,
  kPinnedPeakBytes,
  kClearedBlocks,
  kShadowSeen,  // operations of PyTorch that the value shadow looked at
  kShadowComputed,
  kShadowNanoseconds,
  kCount,
};

void Add(Count count, uint64_t amount = 1);
void Raise(Count count, uint64_t value);  // keeps the highest

// Opens the live file at a process's first context; nothing without VRAMTRACE_SIM_REPORT.
void Open();
void UpdateDevice(int device);
void Refused(int device, uint64_t bytes, const char* what);
void Unsupported(const char* library, const char* function);
void Work(const char* library, const char* function);
// A read of an invention; the texts are copied (values.h, vramtrace_sim_invented).
void Invented(const char* where, const char* what, const char* effect);
// Writes the report; at exit, once.
void Finish();

}  // namespace vramtrace::simulator::report
