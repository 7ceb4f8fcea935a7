#pragma once
// Python frames of the calling thread, read from CPython's own structures without the GIL.
// Supported: CPython 3.9 to 3.14, GIL builds, x86-64 and arm64. Offsets are one table (python_layout.h),
// a row a version; an unknown version or a failed self-check turns frames off.

#include <cstddef>
#include <cstdint>

namespace vramtrace::stacks {

inline constexpr int kMaxPythonFrames = 128;

// One active Python frame. Plain addresses: valid only inside the hook that captured them.
struct PythonFrame {
  const void* code;           // PyCodeObject*
  int32_t byte_offset;        // of the instruction being executed, for PyCode_Addr2Line
  const void* module_object;  // `self` where the code is torch.nn.Module._wrapped_call_impl, else nullptr
};

// Texts of a code object, copied out. NUL-terminated UTF-8, cut at the array's end.
struct CodeText {
  char file[1024];
  char qualified_name[512];
  uint32_t first_line;
};

// Fills `frames`, innermost first; returns how many (0 on a thread without Python state, or when off).
// `*truncated` tells that the stack was deeper than `capacity`.
int CapturePythonFrames(PythonFrame* frames, int capacity, bool* truncated) noexcept;

// Identity of a code object beyond its address, which the interpreter reuses.
uint64_t CodeFingerprint(const void* code) noexcept;

// Copies a code object's texts. False when the object does not look like one.
bool DescribeCode(const void* code, CodeText* text) noexcept;

// Line of a byte offset in a code object, 0 when not known.
uint32_t LineOfCode(const void* code, int32_t byte_offset) noexcept;

}  // namespace vramtrace::stacks
