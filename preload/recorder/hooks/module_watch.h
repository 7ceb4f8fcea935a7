#pragma once
// Finds out, inside a hook, that the labels (preload/python) have work to do, and asks for it without the
// GIL: a pending call, which the interpreter makes on its main thread when it next looks.

#include <cstdint>

#include "preload/recorder/record/recorder.h"

namespace vramtrace::hooks {

enum class LabelRequest : uint32_t {
  kModules = 1,      // a stack has a module object without a name
  kInputs = 2,       // the first forward of a step has begun
  kOutOfMemory = 4,  // say what everything is before it is gone
};

// How a request reaches Python: Py_AddPendingCall with a function of preload/python. Returns false when the
// queue is full. Never takes the GIL.
using PendingCaller = bool (*)();
void SetPendingCaller(PendingCaller caller) noexcept;

// Looks at the modules in an allocation's stack.
void WatchModules(const record::CapturedStack& stack, const record::AutogradPosition& autograd) noexcept;

void AskForLabels(LabelRequest request) noexcept;

// The next allocation asks, whatever its stack is: torch was not complete when we came.
void AskAtNextAllocation() noexcept;

// For preload/python: the requests that have come up, as bits; clears them.
[[nodiscard]] uint32_t TakeLabelRequests() noexcept;

// The module object has a name in the trace, or none can be found: no more requests because of it.
void ModuleIsKnown(const void* object) noexcept;

// The object is gone; its address may come back as another module.
void ModuleIsGone(const void* object) noexcept;

// A step has ended: the next forward is a new one.
void ExpectInputs() noexcept;

// What an allocation has shown of the program so far, for a dry run's last line.
[[nodiscard]] bool HasSeenEvaluation() noexcept;

}  // namespace vramtrace::hooks
