#pragma once
// The table of internals: which rows are on in this process, and why. See internals.def.

namespace vramtrace::stacks {

enum class Internal : int {
#define VRAMTRACE_INTERNAL(identifier, name) identifier,
#include "preload/recorder/stacks/internals.def"
#undef VRAMTRACE_INTERNAL
  kCount
};

[[nodiscard]] const char* NameOf(Internal row) noexcept;

// VRAMTRACE_OFF=name,name switches rows off. The reason is then ready to be reported.
[[nodiscard]] bool SwitchedOff(Internal row) noexcept;

// VRAMTRACE_BREAK=name,name makes the row's self-check see something it did not expect: the tests' way to a
// version that nobody has met yet.
[[nodiscard]] bool MadeToFail(Internal row) noexcept;

// Notes a row's state. Goes to the trace at once where one is open, else when it opens.
void SetInternal(Internal row, bool on, const char* reason) noexcept;

// A check failed while running: the row goes off for good.
void LoseInternal(Internal row, const char* reason) noexcept;

[[nodiscard]] bool IsOn(Internal row) noexcept;

// Writes the state of every row that has one. Called when the trace has just been opened.
void WriteInternals() noexcept;

}  // namespace vramtrace::stacks
