#pragma once
// Where CPython keeps what the frame walker reads: one row a version, GIL builds, 64 bit.
//
// Provenance: offsetof() over the headers of 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0 (Include/internal/
// pycore_frame.h, pycore_pystate.h, cpython/code.h, cpython/unicodeobject.h); 3.14 by reading its headers.
// tests/preload/python_layout_test.py repeats the computation for every version whose headers it finds, and
// at run time CheckPythonFrames() compares the walk with the interpreter's own answer before it is used.

#include <cstddef>
#include <cstdint>

namespace vramtrace::stacks {

enum class FrameKind : uint8_t {
  kObject,       // up to 3.10: PyFrameObject, linked by f_back
  kInterpreter,  // from 3.11: _PyInterpreterFrame
};

// How the position in the byte code is kept.
enum class InstructionKind : uint8_t {
  kByteIndex,    // 3.9: f_lasti in bytes
  kUnitIndex,    // 3.10: f_lasti in 2-byte units
  kCodePointer,  // 3.11 and later: a pointer into the code object's own byte code
};

struct PythonLayout {
  int minor;
  FrameKind frame_kind;
  InstructionKind instruction_kind;
  uint16_t thread_to_frame;  // in PyThreadState: the frame, or the _PyCFrame that has it
  int16_t cframe_to_frame;   // in _PyCFrame; -1 where the thread state points at the frame itself
  uint16_t previous;
  uint16_t code;
  uint16_t instruction;
  uint16_t locals;           // localsplus: the first argument is the first of them
  int16_t owner;             // -1 where there is none
  uint8_t owner_not_python;  // frames whose owner is at least this are no Python frames
  uint8_t tag_bits;          // low bits of a reference in a frame that do not belong to the address
  uint16_t code_filename;
  uint16_t code_name;
  uint16_t code_qualified_name;
  uint16_t code_first_line;
  uint16_t code_line_table;
  uint16_t code_start;  // co_code_adaptive
  uint16_t string_ascii_data;
  uint16_t string_compact_data;
};

inline constexpr uint16_t kObjectType = 8;
inline constexpr uint16_t kStringLength = 16;
inline constexpr uint16_t kStringState = 32;

inline constexpr PythonLayout kPythonLayouts[] = {
    {9,
     FrameKind::kObject,
     InstructionKind::kByteIndex,
     24,
     -1,
     24,
     32,
     104,
     360,
     -1,
     0,
     0,  //
     104,
     112,
     112,
     40,
     120,
     0,
     48,
     72},
    {10,
     FrameKind::kObject,
     InstructionKind::kUnitIndex,
     24,
     -1,
     24,
     32,
     96,
     352,
     -1,
     0,
     0,  //
     104,
     112,
     112,
     40,
     120,
     0,
     48,
     72},
    {11,
     FrameKind::kInterpreter,
     InstructionKind::kCodePointer,
     56,
     8,
     48,
     32,
     56,
     72,
     69,
     3,
     0,  //
     112,
     120,
     128,
     72,
     136,
     184,
     48,
     72},
    {12,
     FrameKind::kInterpreter,
     InstructionKind::kCodePointer,
     56,
     0,
     8,
     0,
     56,
     72,
     70,
     3,
     0,  //
     112,
     120,
     128,
     68,
     136,
     192,
     40,
     56},
    {13,
     FrameKind::kInterpreter,
     InstructionKind::kCodePointer,
     72,
     -1,
     8,
     0,
     56,
     72,
     70,
     3,
     0,  //
     112,
     120,
     128,
     68,
     136,
     200,
     40,
     56},
    {14,
     FrameKind::kInterpreter,
     InstructionKind::kCodePointer,
     72,
     -1,
     8,
     0,
     56,
     80,
     74,
     3,
     3,  //
     112,
     120,
     128,
     68,
     136,
     208,
     40,
     56},
};

// The row of `minor`, or nullptr.
constexpr const PythonLayout* FindPythonLayout(int minor) {
  for (const PythonLayout& row : kPythonLayouts) {
    if (row.minor == minor) return &row;
  }
  return nullptr;
}

// A row that breaks one of these is a typing error: members do not overlap and everything is aligned.
constexpr bool IsConsistent(const PythonLayout& row) {
  const bool modern = row.frame_kind == FrameKind::kInterpreter;
  return row.thread_to_frame % 8 == 0 && row.previous % 8 == 0 && row.code % 8 == 0 && row.locals % 8 == 0 &&
         row.previous != row.code && row.instruction != row.previous && row.instruction < row.locals &&
         (row.owner >= 0) == modern && row.owner < row.locals && (row.code_start != 0) == modern &&
         row.code_name == row.code_filename + 8 && row.code_first_line % 4 == 0 &&
         row.string_compact_data > row.string_ascii_data && row.string_ascii_data >= kStringState + 4;
}
constexpr bool AreConsistent() {
  int expected = kPythonLayouts[0].minor;
  for (const PythonLayout& row : kPythonLayouts) {
    if (!IsConsistent(row) || row.minor != expected++) return false;
  }
  return true;
}
static_assert(AreConsistent());
static_assert(sizeof(void*) == 8, "the table is for 64-bit builds");

}  // namespace vramtrace::stacks
