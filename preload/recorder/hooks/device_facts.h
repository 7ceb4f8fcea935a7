#pragma once
// What the recorder asks the device itself, always through the real functions and never while a stream of
// this thread is being captured in a mode that forbids it.

#include <cstdint>

#include "preload/recorder/hooks/hook_list.h"
#include "preload/recorder/record/recorder.h"

namespace vramtrace::hooks {

// The device of the calling thread, 0 when it cannot be told.
[[nodiscard]] uint32_t CurrentDevice(Family family, const void* caller) noexcept;

// Asks for free and total memory of the current device and writes a MemoryQuery.
void QueryDeviceMemory(Family family, const void* caller, record::QueryReason reason) noexcept;

// Before a device's first allocation: makes its context if the program has not, opens the trace, describes
// the device and writes what the context has cost.
void MeetDevice(Family family, const void* caller) noexcept;

// True once MeetDevice has met one: the device may be asked from outside of hooks.
[[nodiscard]] bool HasMetDevice() noexcept;

}  // namespace vramtrace::hooks
