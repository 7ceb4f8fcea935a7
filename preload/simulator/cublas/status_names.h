#pragma once
// Names of the status codes that cuBLAS and cuBLASLt share.

#include <cublas_v2.h>

namespace vramtrace::simulator::cublas {

inline const char* StatusName(cublasStatus_t status) {
#define VRAMTRACE_NAME(name) \
  case name:                 \
    return #name
  switch (status) {
    VRAMTRACE_NAME(CUBLAS_STATUS_SUCCESS);
    VRAMTRACE_NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    VRAMTRACE_NAME(CUBLAS_STATUS_ALLOC_FAILED);
    VRAMTRACE_NAME(CUBLAS_STATUS_INVALID_VALUE);
    VRAMTRACE_NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    VRAMTRACE_NAME(CUBLAS_STATUS_MAPPING_ERROR);
    VRAMTRACE_NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    VRAMTRACE_NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    VRAMTRACE_NAME(CUBLAS_STATUS_NOT_SUPPORTED);
    VRAMTRACE_NAME(CUBLAS_STATUS_LICENSE_ERROR);
  }
#undef VRAMTRACE_NAME
  return "unknown cuBLAS status";
}

inline const char* StatusSentence(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported by the simulated device" : StatusName(status);
}

}  // namespace vramtrace::simulator::cublas
