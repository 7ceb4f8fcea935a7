#pragma once
// Our Python code inside the user's interpreter, without a change to the program: an audit hook installed
// before the interpreter starts sees `import torch`, and a finder in front of sys.meta_path runs our modules
// exactly when torch is complete.
//
// A library gives its native functions and its modules' sources once, from its constructor. Nothing is done
// in a process without Python, and nothing is imported that the program does not import.

#include <cstddef>

#include "preload/python/python_api.h"

namespace vramtrace::python {

// One embedded file. `path` is relative to preload/python: "labels/steps.py" is module
// _vramtrace.labels.steps.
struct Source {
  const char* path;
  const char* text;
};

struct Host {
  const MethodDefinition* functions = nullptr;  // importable from _vramtrace.native; ends with a null name
  const Source* sources = nullptr;
  size_t source_count = 0;
  // Called with the GIL held when Python code imports something, until it answers true: the interpreter is
  // alive. `last` is true at the import of torch, after which there may be no better moment. May be nullptr.
  bool (*interpreter_alive)(const Api& api, bool last) = nullptr;
};

// False: there is no Python in this process, or it does not take audit hooks. `host` must outlive the
// process.
bool StartHost(const Host& host) noexcept;

// Runs `callback(bits)` on the main thread as soon as the interpreter looks for pending calls. Never takes
// the GIL; false when the interpreter's queue is full.
bool CallPending() noexcept;

// While true, the callback is also run at every import: torch was found in the middle of its own import.
void SetWaiting(bool waiting) noexcept;
[[nodiscard]] bool IsWaiting() noexcept;

// The Python function that CallPending() runs. Takes a reference.
void SetPendingCallback(Object* callback) noexcept;

// Arguments of native functions.
[[nodiscard]] unsigned long long AsUnsigned(const Api& api, Object* value) noexcept;
[[nodiscard]] const char* AsText(const Api& api, Object* value, size_t* length) noexcept;
[[nodiscard]] Object* None(const Api& api) noexcept;  // a new reference

}  // namespace vramtrace::python
