#pragma once
// The hooked functions as pointers of the same names, filled by one of the paths on which programs reach
// them. Code inside the namespace calls through the pointers without knowing it.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "preload/recorder/hooks/declarations.h"
#include "preload/recorder/hooks/hook_list.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace reached {

// Names of other families are called directly.
namespace pointers {
#define VRAMTRACE_POINTER_kRuntime(identifier) inline decltype(&::identifier) identifier = &::identifier;
#define VRAMTRACE_POINTER_kDriver(identifier) inline decltype(&::identifier) identifier = &::identifier;
#define VRAMTRACE_POINTER_kC10(identifier)
#define VRAMTRACE_POINTER_kLoader(identifier)
#define VRAMTRACE_HOOK(identifier, symbol, family, role) VRAMTRACE_POINTER_##family(identifier)
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK
}  // namespace pointers

#define VRAMTRACE_POINTER_USE_kRuntime(identifier) using pointers::identifier;
#define VRAMTRACE_POINTER_USE_kDriver(identifier) using pointers::identifier;
#define VRAMTRACE_POINTER_USE_kC10(identifier)
#define VRAMTRACE_POINTER_USE_kLoader(identifier)
#define VRAMTRACE_HOOK(identifier, symbol, family, role) VRAMTRACE_POINTER_USE_##family(identifier)
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK

// Where a path leads to a driver's exported name: it asks for the base name, and `_ptsz` is a flag.
struct AskedName {
  std::string base;
  cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT;
};
inline AskedName NameToAskFor(std::string symbol) {
  AskedName asked{.base = symbol};
  const auto strip = [&asked](std::string_view suffix) {
    if (!asked.base.ends_with(suffix)) return false;
    asked.base.resize(asked.base.size() - suffix.size());
    return true;
  };
  if (strip("_ptsz")) asked.flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  (void)strip("_v2");
  return asked;
}

inline void* Lookup(const std::string& symbol, const std::string& path, bool driver) {
  const AskedName asked = NameToAskFor(symbol);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
  if (path == "dlsym") {
    void* const library = dlopen(driver ? "libcuda.so.1" : "libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : dlsym(library, symbol.c_str());
  }
  if (path == "proc_address") {
    (void)::cuGetProcAddress_v1(asked.base.c_str(), &function, 12000, asked.flags);
  } else if (path == "proc_address_v2") {
    (void)::cuGetProcAddress_v2(asked.base.c_str(), &function, 13000, asked.flags, nullptr);
  } else if (path == "entry_point") {
    (void)::cudaGetDriverEntryPoint(asked.base.c_str(), &function, asked.flags, &status);
  } else if (path == "entry_point_by_version") {
    (void)::cudaGetDriverEntryPointByVersion(asked.base.c_str(), &function, 13000, asked.flags, &status);
  }
  return function;
}

// Fetches every pointer again: what was fetched when the program was loaded may have been moved since.
inline void Refresh() {
#define VRAMTRACE_REFRESH_kRuntime(identifier) pointers::identifier = &::identifier;
#define VRAMTRACE_REFRESH_kDriver(identifier) pointers::identifier = &::identifier;
#define VRAMTRACE_REFRESH_kC10(identifier)
#define VRAMTRACE_REFRESH_kLoader(identifier)
#define VRAMTRACE_HOOK(identifier, name, family, role) VRAMTRACE_REFRESH_##family(identifier)
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK
}

// Fills the pointer of `symbol`. False where the path does not lead there.
inline bool Reach(const std::string& symbol, const std::string& path) {
  Refresh();
  if (path == "direct") return true;
#define VRAMTRACE_REACH_kRuntime(identifier, name)                                                 \
  if (symbol == name) {                                                                            \
    pointers::identifier = reinterpret_cast<decltype(&::identifier)>(Lookup(symbol, path, false)); \
    return pointers::identifier != nullptr;                                                        \
  }
#define VRAMTRACE_REACH_kDriver(identifier, name)                                                 \
  if (symbol == name) {                                                                           \
    pointers::identifier = reinterpret_cast<decltype(&::identifier)>(Lookup(symbol, path, true)); \
    return pointers::identifier != nullptr;                                                       \
  }
#define VRAMTRACE_REACH_kC10(identifier, name)
#define VRAMTRACE_REACH_kLoader(identifier, name)
#define VRAMTRACE_HOOK(identifier, name, family, role) VRAMTRACE_REACH_##family(identifier, name)
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK
  return false;
}

}  // namespace reached
