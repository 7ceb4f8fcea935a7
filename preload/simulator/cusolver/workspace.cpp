// Workspace sizes. NVIDIA does not publish them; what stands here is what LAPACK's routine of the same name
// asks for with a block of 64 columns (netlib.org/lapack, lwork of each routine), and a copy of the matrices
// where the algorithm works out of place. README.md says how sure that is.

#include <algorithm>

#include "preload/simulator/cusolver/handle.h"

namespace {

using vramtrace::simulator::cusolver::From;

constexpr int64_t kBlock = 64;

int64_t Factor(int64_t m, int64_t n) { return kBlock * std::max<int64_t>({m, n, 1}); }
int64_t Eigen(int64_t n) { return 1 + 6 * n + 2 * n * n; }  // syevd, vectors wanted
int64_t SingularQr(int64_t m, int64_t n) { return m * n + 3 * std::min(m, n) + Factor(m, n); }  // gesvd
int64_t SingularJacobi(int64_t m, int64_t n) { return 2 * (m * n + n * n) + Factor(m, n); }

cusolverStatus_t Answer(cusolverDnHandle_t handle, int64_t elements, int* result) {
  if (From(handle) == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (result == nullptr || elements < 0 || elements > INT32_MAX) return CUSOLVER_STATUS_INVALID_VALUE;
  *result = static_cast<int>(elements);
  return CUSOLVER_STATUS_SUCCESS;
}

int64_t Bytes(cudaDataType type) {
  switch (type) {
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

cusolverStatus_t AnswerBytes(cusolverDnHandle_t handle, int64_t elements, cudaDataType type, size_t* device,
                             size_t* host) {
  if (From(handle) == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (device == nullptr || host == nullptr || elements < 0 || Bytes(type) == 0) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  *device = static_cast<size_t>(elements * Bytes(type));
  *host = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

// Types cannot be put in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define VRAMTRACE_SOLVERS(letter, q, he, type, real)                                                         \
  cusolverStatus_t cusolverDn##letter##potrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n,  \
                                                        type*, int, int* result) {                           \
    return Answer(handle, Factor(n, n), result);                                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n, type*, int, \
                                                        int* result) {                                       \
    return Answer(handle, Factor(m, n), result);                                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, type*, int, \
                                                        int* result) {                                       \
    return Answer(handle, Factor(m, n), result);                                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##q##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int,       \
                                                         const type*, int, const type*, int* result) {       \
    return Answer(handle, Factor(m, n), result);                                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##q##mqr_bufferSize(cusolverDnHandle_t handle, cublasSideMode_t,        \
                                                         cublasOperation_t, int m, int n, int, const type*,  \
                                                         int, const type*, const type*, int, int* result) {  \
    return Answer(handle, Factor(m, n), result);                                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##sytrf_bufferSize(cusolverDnHandle_t handle, int n, type*, int,        \
                                                        int* result) {                                       \
    return Answer(handle, Factor(n, n), result);                                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n,             \
                                                        int* result) {                                       \
    return Answer(handle, SingularQr(m, n), result);                                                         \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##he##evd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t,      \
                                                          cublasFillMode_t, int n, const type*, int,         \
                                                          const real*, int* result) {                        \
    return Answer(handle, Eigen(n), result);                                                                 \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##he##evj_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t,      \
                                                          cublasFillMode_t, int n, const type*, int,         \
                                                          const real*, int* result, syevjInfo_t) {           \
    return Answer(handle, Eigen(n), result);                                                                 \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##he##evjBatched_bufferSize(                                            \
      cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, const type*, int, const real*,  \
      int* result, syevjInfo_t, int batch) {                                                                 \
    return Answer(handle, Eigen(n) * batch, result);                                                         \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##gesvdj_bufferSize(                                                    \
      cusolverDnHandle_t handle, cusolverEigMode_t, int, int m, int n, const type*, int, const real*,        \
      const type*, int, const type*, int, int* result, gesvdjInfo_t) {                                       \
    return Answer(handle, SingularJacobi(m, n), result);                                                     \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##gesvdjBatched_bufferSize(                                             \
      cusolverDnHandle_t handle, cusolverEigMode_t, int m, int n, const type*, int, const real*,             \
      const type*, int, const type*, int, int* result, gesvdjInfo_t, int batch) {                            \
    return Answer(handle, SingularJacobi(m, n) * batch, result);                                             \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##letter##gesvdaStridedBatched_bufferSize(                                      \
      cusolverDnHandle_t handle, cusolverEigMode_t, int, int m, int n, const type*, int, long long,          \
      const real*, long long, const type*, int, long long, const type*, int, long long, int* result,         \
      int batch) {                                                                                           \
    return Answer(handle, SingularJacobi(m, n) * batch, result);                                             \
  }
// NOLINTEND(bugprone-macro-parentheses)
VRAMTRACE_SOLVERS(S, or, sy, float, float)
VRAMTRACE_SOLVERS(D, or, sy, double, double)
VRAMTRACE_SOLVERS(C, un, he, cuComplex, float)
VRAMTRACE_SOLVERS(Z, un, he, cuDoubleComplex, double)

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t,
                                             int64_t n, cudaDataType, const void*, int64_t,
                                             cudaDataType compute, size_t* device, size_t* host) {
  return AnswerBytes(handle, Factor(n, n), compute, device, host);
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m,
                                             int64_t n, cudaDataType, const void*, int64_t, cudaDataType,
                                             const void*, cudaDataType compute, size_t* device,
                                             size_t* host) {
  return AnswerBytes(handle, Factor(m, n), compute, device, host);
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t,
                                             cublasFillMode_t, int64_t n, cudaDataType, const void*, int64_t,
                                             cudaDataType, const void*, cudaDataType compute, size_t* device,
                                             size_t* host) {
  return AnswerBytes(handle, Eigen(n), compute, device, host);
}

cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                                   cusolverEigMode_t, cublasFillMode_t, int64_t n,
                                                   cudaDataType, const void*, int64_t, cudaDataType,
                                                   const void*, cudaDataType compute, size_t* device,
                                                   size_t* host, int64_t batch) {
  return AnswerBytes(handle, Eigen(n) * batch, compute, device, host);
}

cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t,
                                            cusolverEigMode_t, int64_t n, cudaDataType, const void*, int64_t,
                                            cudaDataType, const void*, cudaDataType, const void*, int64_t,
                                            cudaDataType, const void*, int64_t, cudaDataType compute,
                                            size_t* device, size_t* host) {
  return AnswerBytes(handle, Eigen(n), compute, device, host);
}

cusolverStatus_t cusolverDnXsytrs_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int64_t n,
                                             int64_t columns, cudaDataType type, const void*, int64_t,
                                             const int64_t*, cudaDataType, void*, int64_t, size_t* device,
                                             size_t* host) {
  return AnswerBytes(handle, Factor(n, columns), type, device, host);
}

}  // extern "C"
