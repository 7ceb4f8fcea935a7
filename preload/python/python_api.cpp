#include "preload/python/python_api.h"

#include <dlfcn.h>

namespace vramtrace::python {
namespace {

struct Search {
  Api api;
  bool complete = true;

  template <typename Function>
  void Find(Function** function, const char* name) {
    *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    complete = complete && *function != nullptr;
  }

  Search() {
    // Asked first: in every process but Python's this is the only look-up.
    Find(&api.PySys_AddAuditHook, "PySys_AddAuditHook");
    if (!complete) return;
#define VRAMTRACE_PYTHON(name, result, arguments) Find(&api.name, #name);
#include "preload/python/python_api.def"
#undef VRAMTRACE_PYTHON
    api.none = static_cast<Object*>(dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
    complete = complete && api.none != nullptr;
  }
};

}  // namespace

const Api* FindPython() noexcept {
  static const Search search;
  return search.complete ? &search.api : nullptr;
}

}  // namespace vramtrace::python
