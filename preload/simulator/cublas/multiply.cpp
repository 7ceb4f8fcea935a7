// The matrix multiplications that a clock gives a time (core/work_clock.h). They multiply nothing.

#include "preload/simulator/core/work_clock.h"
#include "preload/simulator/cublas/handle.h"

namespace {

using vramtrace::simulator::Multiply;
using vramtrace::simulator::WorkMultiply;
using vramtrace::simulator::cublas::From;
using vramtrace::simulator::cublas::Handle;
using vramtrace::simulator::cublas::kLibrary;

Multiply KindOf(const Handle& handle, cudaDataType type, cublasComputeType_t compute) {
  if (type == CUDA_R_16F || type == CUDA_R_16BF) return Multiply::kHalf;
  const bool tf32 =
      handle.state.math == CUBLAS_TF32_TENSOR_OP_MATH || compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return tf32 ? Multiply::kTf32 : Multiply::kFp32;
}

cublasStatus_t Work(cublasHandle_t handle, const char* function, int64_t m, int64_t n, int64_t k,
                    cudaDataType type, cublasComputeType_t compute) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;
  found->Launch(kLibrary, function);
  WorkMultiply(found->device, KindOf(*found, type, compute),
               2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m, int n,
                              int k, const float*, const float*, int, const float*, int, const float*, float*,
                              int) {
  return Work(handle, "cublasSgemm_v2", m, n, k, CUDA_R_32F, CUBLAS_COMPUTE_32F);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                            const void*, const void*, cudaDataType type, int, const void*, cudaDataType, int,
                            const void*, void*, cudaDataType, int, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  return Work(handle, "cublasGemmEx", m, n, k, type, compute);
}

}  // extern "C"
