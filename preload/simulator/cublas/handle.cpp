#include "preload/simulator/cublas/handle.h"

#include "preload/simulator/cublas/status_names.h"
#include "preload/simulator/stubs/launch.h"

using vramtrace::simulator::cublas::From;
using vramtrace::simulator::cublas::Handle;
using vramtrace::simulator::cublas::kHandleBytes;
using vramtrace::simulator::cublas::kLibrary;

uint64_t vramtrace::simulator::LaunchFor(void* handle, const char* function) {
  Handle* found = Handle::From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  found->Launch(kLibrary, function);
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

template <typename Value>
cublasStatus_t Set(cublasHandle_t handle, Value vramtrace::simulator::cublas::State::*field, Value value) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  found->state.*field = value;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Value>
cublasStatus_t Get(cublasHandle_t handle, Value vramtrace::simulator::cublas::State::*field, Value* value) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = found->state.*field;
  return CUBLAS_STATUS_SUCCESS;
}

cublasLogCallback g_log_callback = nullptr;

}  // namespace

// The settings that a program sets and reads back: setter, getter, type, field.
#define VRAMTRACE_CUBLAS_SETTINGS(X)                                                     \
  X(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math)                            \
  X(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, pointer_mode) \
  X(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t, atomics)            \
  X(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_count_target)
// Those of CUDA 13.
#define VRAMTRACE_CUBLAS_EMULATION_SETTINGS(X)                                                             \
  X(cublasSetEmulationStrategy, cublasGetEmulationStrategy, cublasEmulationStrategy_t, emulation)          \
  X(cublasSetEmulationSpecialValuesSupport, cublasGetEmulationSpecialValuesSupport,                        \
    cudaEmulationSpecialValuesSupport, special_values)                                                     \
  X(cublasSetFixedPointEmulationMantissaControl, cublasGetFixedPointEmulationMantissaControl,              \
    cudaEmulationMantissaControl, mantissa_control)                                                        \
  X(cublasSetFixedPointEmulationMaxMantissaBitCount, cublasGetFixedPointEmulationMaxMantissaBitCount, int, \
    max_mantissa_bits)                                                                                     \
  X(cublasSetFixedPointEmulationMantissaBitOffset, cublasGetFixedPointEmulationMantissaBitOffset, int,     \
    mantissa_bit_offset)                                                                                   \
  X(cublasSetFixedPointEmulationMantissaBitCountPointer,                                                   \
    cublasGetFixedPointEmulationMantissaBitCountPointer, int*, mantissa_bit_count)

extern "C" {

// Types cannot be put in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define VRAMTRACE_CUBLAS_SETTING(setter, getter, type, field)               \
  cublasStatus_t setter(cublasHandle_t handle, type value) {                \
    return Set(handle, &vramtrace::simulator::cublas::State::field, value); \
  }                                                                         \
  cublasStatus_t getter(cublasHandle_t handle, type* value) {               \
    return Get(handle, &vramtrace::simulator::cublas::State::field, value); \
  }
// NOLINTEND(bugprone-macro-parentheses)
VRAMTRACE_CUBLAS_SETTINGS(VRAMTRACE_CUBLAS_SETTING)
#if CUBLAS_VER_MAJOR >= 13
VRAMTRACE_CUBLAS_EMULATION_SETTINGS(VRAMTRACE_CUBLAS_SETTING)
#endif

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<cublasHandle_t>(Handle::Create(kHandleBytes, kLibrary));
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Handle::Destroy(found, kLibrary);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

size_t cublasGetCudartVersion() { return CUDART_VERSION; }

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  found->stream = stream;
  // The documentation of cublasSetStream: the workspace goes back to the library's own.
  found->state.workspace = nullptr;
  found->state.workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *stream = static_cast<cudaStream_t>(found->stream);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  // Documented: the address must be aligned to 256 bytes.
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  found->state.workspace = workspace;
  found->state.workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  return vramtrace::simulator::cublas::StatusName(status);
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return vramtrace::simulator::cublas::StatusSentence(status);
}

cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback) {
  g_log_callback = callback;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
  if (callback == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = g_log_callback;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
