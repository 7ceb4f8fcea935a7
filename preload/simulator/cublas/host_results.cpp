// Functions whose result the caller reads on the host: the kernel did nothing, so the result is 0, as device
// memory would read. Leaving it unwritten would hand the caller what happened to lie there.

#include <cstring>

#include "preload/simulator/cublas/handle.h"

namespace {

using vramtrace::simulator::cublas::From;
using vramtrace::simulator::cublas::Handle;
using vramtrace::simulator::cublas::kLibrary;
using vramtrace::simulator::cublas::ResultOnHost;

cublasStatus_t Reduce(cublasHandle_t handle, const char* function, void* result, size_t bytes) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (ResultOnHost(*found)) std::memset(result, 0, bytes);
  found->Launch(kLibrary, function);
  return CUBLAS_STATUS_SUCCESS;
}

// `info` of the batched solvers is a host integer: 0 says that the arguments were right.
cublasStatus_t Solve(cublasHandle_t handle, const char* function, int* info) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *info = 0;
  found->Launch(kLibrary, function);
  return CUBLAS_STATUS_SUCCESS;
}

size_t ResultBytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 0;
  }
}

cublasStatus_t ReduceTyped(cublasHandle_t handle, const char* function, void* result, cudaDataType type) {
  const size_t bytes = ResultBytes(type);
  return bytes == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : Reduce(handle, function, result, bytes);
}

}  // namespace

extern "C" {

// Types cannot be put in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define VRAMTRACE_CUBLAS_DOT(name, integer, type)                                                 \
  cublasStatus_t name(cublasHandle_t handle, integer, const type*, integer, const type*, integer, \
                      type* result) {                                                             \
    return Reduce(handle, #name, result, sizeof *result);                                         \
  }
#define VRAMTRACE_CUBLAS_NORM(name, integer, type, result_type)                                    \
  cublasStatus_t name(cublasHandle_t handle, integer, const type*, integer, result_type* result) { \
    return Reduce(handle, #name, result, sizeof *result);                                          \
  }
#define VRAMTRACE_CUBLAS_DOT_EX(name, integer)                                                         \
  cublasStatus_t name(cublasHandle_t handle, integer, const void*, cudaDataType, integer, const void*, \
                      cudaDataType, integer, void* result, cudaDataType type, cudaDataType) {          \
    return ReduceTyped(handle, #name, result, type);                                                   \
  }
#define VRAMTRACE_CUBLAS_NORM_EX(name, integer)                                                         \
  cublasStatus_t name(cublasHandle_t handle, integer, const void*, cudaDataType, integer, void* result, \
                      cudaDataType type, cudaDataType) {                                                \
    return ReduceTyped(handle, #name, result, type);                                                    \
  }

#define VRAMTRACE_CUBLAS_REDUCTIONS(suffix, integer)                            \
  VRAMTRACE_CUBLAS_DOT(cublasSdot##suffix, integer, float)                      \
  VRAMTRACE_CUBLAS_DOT(cublasDdot##suffix, integer, double)                     \
  VRAMTRACE_CUBLAS_DOT(cublasCdotu##suffix, integer, cuComplex)                 \
  VRAMTRACE_CUBLAS_DOT(cublasCdotc##suffix, integer, cuComplex)                 \
  VRAMTRACE_CUBLAS_DOT(cublasZdotu##suffix, integer, cuDoubleComplex)           \
  VRAMTRACE_CUBLAS_DOT(cublasZdotc##suffix, integer, cuDoubleComplex)           \
  VRAMTRACE_CUBLAS_NORM(cublasSnrm2##suffix, integer, float, float)             \
  VRAMTRACE_CUBLAS_NORM(cublasDnrm2##suffix, integer, double, double)           \
  VRAMTRACE_CUBLAS_NORM(cublasScnrm2##suffix, integer, cuComplex, float)        \
  VRAMTRACE_CUBLAS_NORM(cublasDznrm2##suffix, integer, cuDoubleComplex, double) \
  VRAMTRACE_CUBLAS_NORM(cublasSasum##suffix, integer, float, float)             \
  VRAMTRACE_CUBLAS_NORM(cublasDasum##suffix, integer, double, double)           \
  VRAMTRACE_CUBLAS_NORM(cublasScasum##suffix, integer, cuComplex, float)        \
  VRAMTRACE_CUBLAS_NORM(cublasDzasum##suffix, integer, cuDoubleComplex, double)

VRAMTRACE_CUBLAS_REDUCTIONS(_v2, int)
VRAMTRACE_CUBLAS_REDUCTIONS(_v2_64, int64_t)
VRAMTRACE_CUBLAS_DOT_EX(cublasDotEx, int)
VRAMTRACE_CUBLAS_DOT_EX(cublasDotcEx, int)
VRAMTRACE_CUBLAS_DOT_EX(cublasDotEx_64, int64_t)
VRAMTRACE_CUBLAS_DOT_EX(cublasDotcEx_64, int64_t)
VRAMTRACE_CUBLAS_NORM_EX(cublasNrm2Ex, int)
VRAMTRACE_CUBLAS_NORM_EX(cublasAsumEx, int)
VRAMTRACE_CUBLAS_NORM_EX(cublasNrm2Ex_64, int64_t)
VRAMTRACE_CUBLAS_NORM_EX(cublasAsumEx_64, int64_t)

#define VRAMTRACE_CUBLAS_SOLVERS(letter, type)                                                               \
  cublasStatus_t cublas##letter##getrsBatched(cublasHandle_t handle, cublasOperation_t, int, int,            \
                                              const type* const[], int, const int*, type* const[], int,      \
                                              int* info, int) {                                              \
    return Solve(handle, "cublas" #letter "getrsBatched", info);                                             \
  }                                                                                                          \
  cublasStatus_t cublas##letter##geqrfBatched(cublasHandle_t handle, int, int, type* const[], int,           \
                                              type* const[], int* info, int) {                               \
    return Solve(handle, "cublas" #letter "geqrfBatched", info);                                             \
  }                                                                                                          \
  cublasStatus_t cublas##letter##gelsBatched(cublasHandle_t handle, cublasOperation_t, int, int, int,        \
                                             type* const[], int, type* const[], int, int* info, int*, int) { \
    return Solve(handle, "cublas" #letter "gelsBatched", info);                                              \
  }
// NOLINTEND(bugprone-macro-parentheses)
VRAMTRACE_CUBLAS_SOLVERS(S, float)
VRAMTRACE_CUBLAS_SOLVERS(D, double)
VRAMTRACE_CUBLAS_SOLVERS(C, cuComplex)
VRAMTRACE_CUBLAS_SOLVERS(Z, cuDoubleComplex)

}  // extern "C"
