#include "preload/python/python_host.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vramtrace::python {
namespace {

constexpr const char* kEntry = "import_finder.py";

const Host* g_host = nullptr;
const Api* g_api = nullptr;
std::atomic<bool> g_alive_told{false};
std::atomic<bool> g_started{false};
std::atomic<bool> g_waiting{false};
std::atomic<Object*> g_callback{nullptr};

// Our code must not leave an exception behind, nor take one away that is being handled.
class KeepError {
 public:
  explicit KeepError(const Api& api) : api_(api) { api_.PyErr_Fetch(&type_, &value_, &trace_); }
  ~KeepError() {
    if (api_.PyErr_Occurred() != nullptr) {
      // Shown only on demand: the program has done nothing wrong.
      if (std::getenv("VRAMTRACE_DEBUG") != nullptr) api_.PyErr_Print();
      api_.PyErr_Clear();
    }
    api_.PyErr_Restore(type_, value_, trace_);
  }
  KeepError(const KeepError&) = delete;
  KeepError& operator=(const KeepError&) = delete;

 private:
  const Api& api_;
  Object* type_ = nullptr;
  Object* value_ = nullptr;
  Object* trace_ = nullptr;
};

Object* MakeNativeModule(const Api& api, const Host& host) {
  Object* module = api.PyModule_New("_vramtrace.native");
  if (module == nullptr) return nullptr;
  Object* names = api.PyModule_GetDict(module);
  for (const MethodDefinition* function = host.functions; function->name != nullptr; ++function) {
    Object* made = api.PyCFunction_NewEx(const_cast<MethodDefinition*>(function), nullptr, nullptr);
    if (made == nullptr) return nullptr;
    api.PyDict_SetItemString(names, function->name, made);
    api.Py_DecRef(made);
  }
  return module;
}

Object* MakeSources(const Api& api, const Host& host) {
  Object* sources = api.PyDict_New();
  for (size_t i = 0; sources != nullptr && i < host.source_count; ++i) {
    Object* text = api.PyUnicode_FromString(host.sources[i].text);
    if (text == nullptr) return nullptr;
    api.PyDict_SetItemString(sources, host.sources[i].path, text);
    api.Py_DecRef(text);
  }
  return sources;
}

const char* FindSource(const Host& host, const char* path) {
  for (size_t i = 0; i < host.source_count; ++i) {
    if (std::strcmp(host.sources[i].path, path) == 0) return host.sources[i].text;
  }
  return nullptr;
}

// Runs import_finder.py in a namespace of its own and calls its start(native, sources, code).
void Bootstrap(const Api& api, const Host& host) {
  const KeepError keep(api);
  Object* native = MakeNativeModule(api, host);
  Object* sources = MakeSources(api, host);
  Object* code = api.Py_CompileString(FindSource(host, kEntry), "<vramtrace>/import_finder.py", kFileInput);
  Object* module = api.PyModule_New("_vramtrace.import_finder");
  if (native == nullptr || sources == nullptr || code == nullptr || module == nullptr) return;
  Object* names = api.PyModule_GetDict(module);
  api.PyDict_SetItemString(names, "__builtins__", api.PyEval_GetBuiltins());
  Object* done = api.PyEval_EvalCode(code, names, names);
  if (done == nullptr) return;
  Object* start = api.PyDict_GetItemString(names, "start");
  Object* result =
      api.PyObject_CallFunctionObjArgs(start, native, sources, code, module, static_cast<Object*>(nullptr));
  if (result != nullptr) api.Py_DecRef(result);
  api.Py_DecRef(done);
  // `native`, `sources`, `code` and `module` live as long as the interpreter: their references are kept.
}

bool IsTorch(const char* name) {
  return std::strncmp(name, "torch", 5) == 0 && (name[5] == '\0' || name[5] == '.');
}

// Our Python code catches every Exception. What is left is the program's, e.g. a KeyboardInterrupt that was
// delivered while we ran: it goes on to where it would have been raised.
int RunCallback(void*) {
  Object* callback = g_callback.load(std::memory_order_acquire);
  if (callback == nullptr) return 0;
  Object* result = g_api->PyObject_CallFunctionObjArgs(callback, static_cast<Object*>(nullptr));
  if (result == nullptr) return -1;
  g_api->Py_DecRef(result);
  return 0;
}

void TellAlive(const Api& api, bool last) {
  if (g_alive_told.load(std::memory_order_relaxed) || api.PyEval_GetFrame() == nullptr) return;
  const KeepError keep(api);
  if (g_host->interpreter_alive == nullptr || g_host->interpreter_alive(api, last)) g_alive_told.store(true);
}

// Audit events come by the thousand at start-up: one comparison for all but imports.
int OnAudit(const char* event, Object* arguments, void*) {
  if (event[0] != 'i' || std::strcmp(event, "import") != 0 || arguments == nullptr) return 0;
  if (g_waiting.load(std::memory_order_relaxed)) return RunCallback(nullptr);
  if (g_started.load(std::memory_order_relaxed)) return 0;
  const Api& api = *g_api;
  size_t length = 0;
  const char* name =
      api.PyTuple_Size(arguments) < 1 ? nullptr : AsText(api, api.PyTuple_GetItem(arguments, 0), &length);
  if (name == nullptr) {
    api.PyErr_Clear();
    return 0;
  }
  const bool torch = IsTorch(name);
  TellAlive(api, torch);
  if (torch && !g_started.exchange(true)) Bootstrap(api, *g_host);
  return 0;
}

}  // namespace

bool StartHost(const Host& host) noexcept {
  const Api* api = FindPython();
  // An interpreter that already runs is not ours to interrupt: it needs its lock held for this call.
  if (api == nullptr || api->Py_IsInitialized() != 0) return false;
  g_api = api;
  g_host = &host;
  return api->PySys_AddAuditHook(OnAudit, nullptr) == 0;
}

bool CallPending() noexcept {
  return g_api != nullptr && g_api->Py_AddPendingCall(RunCallback, nullptr) == 0;
}

void SetWaiting(bool waiting) noexcept { g_waiting.store(waiting, std::memory_order_release); }

bool IsWaiting() noexcept { return g_waiting.load(std::memory_order_relaxed); }

void SetPendingCallback(Object* callback) noexcept {
  g_api->Py_IncRef(callback);
  g_callback.store(callback, std::memory_order_release);
}

unsigned long long AsUnsigned(const Api& api, Object* value) noexcept {
  return api.PyLong_AsUnsignedLongLongMask(value);
}

const char* AsText(const Api& api, Object* value, size_t* length) noexcept {
  long bytes = 0;
  const char* text = value == nullptr ? nullptr : api.PyUnicode_AsUTF8AndSize(value, &bytes);
  *length = text == nullptr ? 0 : static_cast<size_t>(bytes);
  return text;
}

Object* None(const Api& api) noexcept {
  api.Py_IncRef(api.none);
  return api.none;
}

}  // namespace vramtrace::python
