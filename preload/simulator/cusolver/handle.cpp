// Handles and the settings of solvers. The solvers themselves launch work and do nothing (exports.txt,
// kernel).

#include "preload/simulator/cusolver/handle.h"

#include <algorithm>

#include "preload/simulator/stubs/launch.h"

namespace {

using vramtrace::simulator::cusolver::From;
using vramtrace::simulator::cusolver::Handle;
using vramtrace::simulator::cusolver::kHandleBytes;
using vramtrace::simulator::cusolver::kLibrary;

// Settings of the iterative solvers: nothing follows from them here, but handles must be distinct.
struct Settings {};

template <typename Out>
cusolverStatus_t Make(Out* out) {
  if (out == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *out = reinterpret_cast<Out>(new Settings);
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename In>
cusolverStatus_t Remove(In in) {
  delete reinterpret_cast<Settings*>(in);
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

namespace vramtrace::simulator {

uint64_t LaunchFor(void* handle, const char* function) {
  auto* found = Handle::From(handle);
  if (found == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  found->Launch(kLibrary, function);
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace vramtrace::simulator

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  if (handle == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  auto* made = Handle::Create(kHandleBytes, kLibrary);
  if (made == nullptr) return CUSOLVER_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cusolverDnHandle_t>(made);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  if (handle == nullptr) return CUSOLVER_STATUS_SUCCESS;
  auto* found = From(handle);
  if (found == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  Handle::Destroy(found, kLibrary);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  auto* found = From(handle);
  if (found == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  found->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  auto* found = From(handle);
  if (found == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *stream = static_cast<cudaStream_t>(found->stream);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) { return Make(params); }
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) { return Remove(params); }
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) { return Make(info); }
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) { return Remove(info); }
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* info) { return Make(info); }
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info) { return Remove(info); }

cusolverStatus_t cusolverDnXsyevjSetTolerance(syevjInfo_t, double) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXsyevjSetMaxSweeps(syevjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXsyevjSetSortEig(syevjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXgesvdjSetTolerance(gesvdjInfo_t, double) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnXgesvdjSetSortEig(gesvdjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }

// The residuals are host memory.
#define VRAMTRACE_GESVDA(letter, type, real)                                                           \
  cusolverStatus_t cusolverDn##letter##gesvdaStridedBatched(                                           \
      cusolverDnHandle_t handle, cusolverEigMode_t, int, int, int, const type*, int, long long, real*, \
      long long, type*, int, long long, type*, int, long long, type*, int, int*, double* residuals,    \
      int batch) {                                                                                     \
    auto* found = From(handle);                                                                        \
    if (found == nullptr) return CUSOLVER_STATUS_NOT_INITIALIZED;                                      \
    if (batch < 0) return CUSOLVER_STATUS_INVALID_VALUE;                                               \
    if (residuals != nullptr) std::fill_n(residuals, batch, 0.0);                                      \
    found->Launch(kLibrary, "cusolverDn" #letter "gesvdaStridedBatched");                              \
    return CUSOLVER_STATUS_SUCCESS;                                                                    \
  }
VRAMTRACE_GESVDA(S, float, float)
VRAMTRACE_GESVDA(D, double, double)
VRAMTRACE_GESVDA(C, cuComplex, float)
VRAMTRACE_GESVDA(Z, cuDoubleComplex, double)

}  // extern "C"
