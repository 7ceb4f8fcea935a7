#include "preload/recorder/hooks/interpreter_check.h"

#include "preload/python/python_host.h"
#include "preload/recorder/hooks/trace_session.h"
#include "preload/recorder/stacks/internals.h"
#include "preload/recorder/stacks/python_check.h"
#include "preload/recorder/stacks/python_frames.h"

namespace vramtrace::hooks {
namespace {

using python::Api;
using python::Object;
using stacks::Internal;

// References that the expected texts live in.
struct Held {
  static constexpr int kMax = 8 * stacks::kMaxPythonFrames;
  const Api& api;
  Object* objects[kMax];
  int count = 0;

  Object* Keep(Object* object) {
    if (object != nullptr && count < kMax) objects[count++] = object;
    if (object == nullptr) api.PyErr_Clear();
    return object;
  }
  ~Held() {
    for (int i = 0; i < count; ++i) api.Py_DecRef(objects[i]);
  }
};

uint32_t NumberOf(Held& held, Object* object, const char* attribute) {
  Object* value = held.Keep(held.api.PyObject_GetAttrString(object, attribute));
  return value == nullptr ? 0 : static_cast<uint32_t>(held.api.PyLong_AsLongLong(value));
}

const char* TextOf(Held& held, Object* object, const char* attribute) {
  Object* value = held.Keep(held.api.PyObject_GetAttrString(object, attribute));
  size_t length = 0;
  return value == nullptr ? nullptr : python::AsText(held.api, value, &length);
}

// The current stack as the interpreter tells it, innermost first.
int ReadExpected(Held& held, stacks::ExpectedFrame* expected, int capacity) {
  Object* frame = held.api.PyEval_GetFrame();  // borrowed
  int count = 0;
  while (frame != nullptr && frame != held.api.none && count < capacity) {
    stacks::ExpectedFrame& row = expected[count];
    Object* code = held.Keep(held.api.PyObject_GetAttrString(frame, "f_code"));
    if (code == nullptr) break;
    row.code = code;
    row.byte_offset = static_cast<int32_t>(NumberOf(held, frame, "f_lasti"));
    row.line = NumberOf(held, frame, "f_lineno");
    row.first_line = NumberOf(held, code, "co_firstlineno");
    row.file = TextOf(held, code, "co_filename");
    row.qualified_name = TextOf(held, code, "co_qualname");  // since 3.11
    if (row.qualified_name == nullptr) row.qualified_name = TextOf(held, code, "co_name");
    if (row.file == nullptr || row.qualified_name == nullptr) break;
    ++count;
    frame = held.Keep(held.api.PyObject_GetAttrString(frame, "f_back"));
  }
  return count;
}

}  // namespace

bool CheckInterpreter(const Api& api, bool last) {
  stacks::PythonVerdict verdict;
  const bool known = stacks::FindPythonInterpreter(&verdict);
  LearnPython(verdict.version);
  if (!known || stacks::SwitchedOff(Internal::kPythonFrames)) {
    stacks::SetInternal(Internal::kPythonFrames, false,
                        known ? "switched off by VRAMTRACE_OFF" : verdict.reason);
    return true;
  }
  Held held{api, {}, 0};
  stacks::ExpectedFrame expected[stacks::kMaxPythonFrames];
  const int count = ReadExpected(held, expected, stacks::kMaxPythonFrames);
  constexpr int kEnough = 4;
  if (count < kEnough && !last) return false;
  const bool on = count > 0 && stacks::CheckPythonFrames(expected, count, &verdict);
  stacks::SetInternal(Internal::kPythonFrames, on, count > 0 ? verdict.reason : "no frame to check against");
  return true;
}

}  // namespace vramtrace::hooks
