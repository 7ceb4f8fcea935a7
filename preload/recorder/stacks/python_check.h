#pragma once
// Start of the Python frame walker: which interpreter this is, and the check that allows the walk.
// Called by preload/python with the GIL held; touches no GPU and no random state.

#include <cstdint>

namespace vramtrace::stacks {

struct PythonVerdict {
  char version[32] = "";
  char reason[160] = "";  // why frames are off, or what was checked
};

// What the interpreter itself says of one active frame.
struct ExpectedFrame {
  const void* code;
  int32_t byte_offset;
  uint32_t line;
  uint32_t first_line;
  const char* file;
  const char* qualified_name;
};

// Looks the interpreter up and takes its row of python_layout.h. False: frames stay off, `reason` says why.
bool FindPythonInterpreter(PythonVerdict* verdict) noexcept;

// Compares the walk with `expected`, innermost first; equal switches frames on. Call it on the thread whose
// frames `expected` describes, from C code that was called by expected[0].
bool CheckPythonFrames(const ExpectedFrame* expected, int count, PythonVerdict* verdict) noexcept;

// Off for the rest of the process, e.g. after a violation.
void DisablePythonFrames() noexcept;

// torch.nn.Module._wrapped_call_impl.__code__: the frames whose first local is a module.
void SetModuleCallCode(const void* code) noexcept;

}  // namespace vramtrace::stacks
