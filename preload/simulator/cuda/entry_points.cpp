// cuGetProcAddress: the functions that are really done, by their base name. What only refuses is not found,
// so that a caller takes its way without it.
#include <cstring>

#include "preload/simulator/core/log.h"
#include "preload/simulator/cuda/driver.h"
#include "preload/simulator/cuda/functions.h"

using namespace vramtrace::simulator;

namespace {

struct EntryPoint {
  const char* name;
  void* function;
};

// The headers' macros turn a base name into its newest version; its text stays the base name.
const EntryPoint kEntryPoints[] = {
#define X(name) {#name, reinterpret_cast<void*>(&name)},
    VRAMTRACE_SIM_DRIVER_FUNCTIONS(X)
#undef X
};

}  // namespace

extern "C" {

CUresult cuGetProcAddress(const char* symbol, void** function, int /*version*/, cuuint64_t /*flags*/,
                          CUdriverProcAddressQueryResult* result) {
  *function = nullptr;
  for (const EntryPoint& entry : kEntryPoints) {
    if (std::strcmp(entry.name, symbol) == 0) *function = entry.function;
  }
  bool found = *function != nullptr;
  if (result != nullptr) {
    *result = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
