// The driver's functions by name: only what our libcuda.so.1 really does is found.
#include <dlfcn.h>

#include "preload/simulator/core/log.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;

namespace {

using Find = int (*)(const char*, void**, int, unsigned long long, int*);  // cuGetProcAddress_v2

Find DriverLookup() {
  static Find find = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver == nullptr ? nullptr : reinterpret_cast<Find>(dlsym(driver, "cuGetProcAddress_v2"));
  }();
  return find;
}

cudaError_t EntryPoint(const char* symbol, void** function, unsigned version,
                       cudaDriverEntryPointQueryResult* result) {
  Find find = DriverLookup();
  int status = 0;
  *function = nullptr;
  if (find != nullptr) {
    // A missing symbol is an answer, not an error of this call.
    static_cast<void>(find(symbol, function, static_cast<int>(version), 0, &status));
  }
  if (result != nullptr) {
    *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  Log("entry point %s: %s", symbol, *function != nullptr ? "found" : "not found");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  return EntryPoint(symbol, function, version, result);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long /*flags*/,
                                    cudaDriverEntryPointQueryResult* result) {
  return EntryPoint(symbol, function, CUDART_VERSION, result);
}

}  // extern "C"
