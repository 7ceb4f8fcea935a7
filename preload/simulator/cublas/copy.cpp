// cublasSetVector and its kin: copies between host and device with strides. They are really made.

#include "preload/simulator/core/contents.h"
#include "preload/simulator/cublas/handle.h"

namespace {

using vramtrace::simulator::Status;

cublasStatus_t CopyStrided(void* destination, int64_t destination_pitch, const void* source,
                           int64_t source_pitch, int64_t width, int64_t height) {
  if (width < 0 || height < 0 || destination_pitch < width || source_pitch < width) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (width == 0 || height == 0) return CUBLAS_STATUS_SUCCESS;
  const Status status = vramtrace::simulator::Copy2D(
      destination, static_cast<uint64_t>(destination_pitch), source, static_cast<uint64_t>(source_pitch),
      static_cast<uint64_t>(width), static_cast<uint64_t>(height));
  return status == Status::kOk ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

// Element after element, `source_step` and `destination_step` elements apart.
cublasStatus_t CopyVector(int64_t n, int64_t element, const void* source, int64_t source_step,
                          void* destination, int64_t destination_step) {
  if (source_step <= 0 || destination_step <= 0 || element <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  return CopyStrided(destination, destination_step * element, source, source_step * element, element, n);
}

// Column-major: one row of the strided copy is a column of the matrix.
cublasStatus_t CopyMatrix(int64_t rows, int64_t columns, int64_t element, const void* source,
                          int64_t source_rows, void* destination, int64_t destination_rows) {
  if (element <= 0 || source_rows <= 0 || destination_rows <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  return CopyStrided(destination, destination_rows * element, source, source_rows * element, rows * element,
                     columns);
}

}  // namespace

extern "C" {

#define VRAMTRACE_CUBLAS_VECTOR(name, integer)                                                          \
  cublasStatus_t name(integer n, integer element, const void* x, integer incx, void* y, integer incy) { \
    return CopyVector(n, element, x, incx, y, incy);                                                    \
  }
#define VRAMTRACE_CUBLAS_VECTOR_ASYNC(name, integer)                                                  \
  cublasStatus_t name(integer n, integer element, const void* x, integer incx, void* y, integer incy, \
                      cudaStream_t) {                                                                 \
    return CopyVector(n, element, x, incx, y, incy);                                                  \
  }
#define VRAMTRACE_CUBLAS_MATRIX(name, integer)                                                             \
  cublasStatus_t name(integer rows, integer columns, integer element, const void* a, integer lda, void* b, \
                      integer ldb) {                                                                       \
    return CopyMatrix(rows, columns, element, a, lda, b, ldb);                                             \
  }
#define VRAMTRACE_CUBLAS_MATRIX_ASYNC(name, integer)                                                       \
  cublasStatus_t name(integer rows, integer columns, integer element, const void* a, integer lda, void* b, \
                      integer ldb, cudaStream_t) {                                                         \
    return CopyMatrix(rows, columns, element, a, lda, b, ldb);                                             \
  }

VRAMTRACE_CUBLAS_VECTOR(cublasSetVector, int)
VRAMTRACE_CUBLAS_VECTOR(cublasGetVector, int)
VRAMTRACE_CUBLAS_VECTOR(cublasSetVector_64, int64_t)
VRAMTRACE_CUBLAS_VECTOR(cublasGetVector_64, int64_t)
VRAMTRACE_CUBLAS_VECTOR_ASYNC(cublasSetVectorAsync, int)
VRAMTRACE_CUBLAS_VECTOR_ASYNC(cublasGetVectorAsync, int)
VRAMTRACE_CUBLAS_VECTOR_ASYNC(cublasSetVectorAsync_64, int64_t)
VRAMTRACE_CUBLAS_VECTOR_ASYNC(cublasGetVectorAsync_64, int64_t)
VRAMTRACE_CUBLAS_MATRIX(cublasSetMatrix, int)
VRAMTRACE_CUBLAS_MATRIX(cublasGetMatrix, int)
VRAMTRACE_CUBLAS_MATRIX(cublasSetMatrix_64, int64_t)
VRAMTRACE_CUBLAS_MATRIX(cublasGetMatrix_64, int64_t)
VRAMTRACE_CUBLAS_MATRIX_ASYNC(cublasSetMatrixAsync, int)
VRAMTRACE_CUBLAS_MATRIX_ASYNC(cublasGetMatrixAsync, int)
VRAMTRACE_CUBLAS_MATRIX_ASYNC(cublasSetMatrixAsync_64, int64_t)
VRAMTRACE_CUBLAS_MATRIX_ASYNC(cublasGetMatrixAsync_64, int64_t)

}  // extern "C"
