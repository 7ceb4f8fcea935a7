#pragma once
// CPython's C API, resolved at run time. See python_api.def.

namespace vramtrace::python {

struct Object;  // PyObject: only ever passed on

using NativeCall = Object* (*)(Object* self, Object* const* arguments, long count);

// PyMethodDef for METH_FASTCALL.
struct MethodDefinition {
  const char* name;
  NativeCall call;
  int flags;
  const char* documentation;
};
inline constexpr int kFastCall = 0x80;  // METH_FASTCALL, since 3.7
inline constexpr int kFileInput = 257;  // Py_file_input

struct Api {
#define VRAMTRACE_PYTHON(name, result, arguments) result(*name) arguments = nullptr;
#include "preload/python/python_api.def"
#undef VRAMTRACE_PYTHON
  Object* none = nullptr;  // _Py_NoneStruct
};

// The interpreter's functions; nullptr where there is no Python, or one that lacks any of them. Found once.
[[nodiscard]] const Api* FindPython() noexcept;

}  // namespace vramtrace::python
