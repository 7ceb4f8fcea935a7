// Workspace sizes. None is published. Products and solvers: 8 B a stored entry and 8 B a row, what a copy of
// the structure by another order takes. Sorting: keys and places twice (CUB's radix sort). README.md says how
// sure that is.

#include "preload/simulator/cusparse/descriptors.h"

using vramtrace::simulator::cusparse::From;
using vramtrace::simulator::cusparse::FromMatrix;
using vramtrace::simulator::cusparse::kLibrary;
using vramtrace::simulator::cusparse::Matrix;

namespace {

cusparseStatus_t Structure(cusparseHandle_t handle, const void* sparse, size_t* bytes) {
  const Matrix* matrix = FromMatrix(sparse);
  if (From(handle) == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (matrix == nullptr || bytes == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  *bytes = 8 * static_cast<size_t>(matrix->stored + matrix->rows + 1);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t Sorting(cusparseHandle_t handle, int stored, size_t* bytes) {
  if (From(handle) == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (bytes == nullptr || stored < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  *bytes = 16 * static_cast<size_t>(stored) + 512;
  return CUSPARSE_STATUS_SUCCESS;
}

// The product of two sparse matrices: each phase is asked for its size first, then run. How many entries the
// product has is a value that nobody computes: as many as the operand with more.
cusparseStatus_t Product(cusparseHandle_t handle, const char* function, const void* a, const void* b, void* c,
                         size_t* bytes, const void* buffer) {
  const Matrix* left = FromMatrix(a);
  const Matrix* right = FromMatrix(b);
  auto* result = const_cast<Matrix*>(FromMatrix(c));
  auto* found = From(handle);
  if (found == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (left == nullptr || right == nullptr || result == nullptr || bytes == nullptr) {
    return CUSPARSE_STATUS_INVALID_VALUE;
  }
  if (buffer == nullptr) {
    *bytes = 8 * static_cast<size_t>(left->stored + right->stored + left->rows + 1);
    return CUSPARSE_STATUS_SUCCESS;
  }
  result->stored = left->stored > right->stored ? left->stored : right->stored;
  found->Launch(kLibrary, function);
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t,
                                         const void*, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t,
                                         const void*, cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t,
                                         size_t* bytes) {
  return Structure(handle, a, bytes);
}

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t, const void*,
                                         cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t,
                                         size_t* bytes) {
  return Structure(handle, a, bytes);
}

cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t,
                                          const void*, cusparseConstDnMatDescr_t, cusparseConstDnMatDescr_t,
                                          const void*, cusparseSpMatDescr_t c, cudaDataType,
                                          cusparseSDDMMAlg_t, size_t* bytes) {
  return Structure(handle, c, bytes);
}

cusparseStatus_t cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t,
                                         const void*, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t,
                                         cusparseDnMatDescr_t, cudaDataType, cusparseSpSMAlg_t,
                                         cusparseSpSMDescr_t, size_t* bytes) {
  return Structure(handle, a, bytes);
}

cusparseStatus_t cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t,
                                         cusparseDnVecDescr_t, cudaDataType, cusparseSpSVAlg_t,
                                         cusparseSpSVDescr_t, size_t* bytes) {
  return Structure(handle, a, bytes);
}

cusparseStatus_t cusparseXcoosort_bufferSizeExt(cusparseHandle_t handle, int, int, int stored, const int*,
                                                const int*, size_t* bytes) {
  return Sorting(handle, stored, bytes);
}

cusparseStatus_t cusparseXcsrsort_bufferSizeExt(cusparseHandle_t handle, int, int, int stored, const int*,
                                                const int*, size_t* bytes) {
  return Sorting(handle, stored, bytes);
}

cusparseStatus_t cusparseSpGEMM_workEstimation(cusparseHandle_t handle, cusparseOperation_t,
                                               cusparseOperation_t, const void*, cusparseConstSpMatDescr_t a,
                                               cusparseConstSpMatDescr_t b, const void*,
                                               cusparseSpMatDescr_t c, cudaDataType, cusparseSpGEMMAlg_t,
                                               cusparseSpGEMMDescr_t, size_t* bytes, void* buffer) {
  return Product(handle, "cusparseSpGEMM_workEstimation", a, b, c, bytes, buffer);
}

cusparseStatus_t cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t,
                                        const void*, cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                        const void*, cusparseSpMatDescr_t c, cudaDataType,
                                        cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t, size_t* bytes,
                                        void* buffer) {
  return Product(handle, "cusparseSpGEMM_compute", a, b, c, bytes, buffer);
}

}  // extern "C"
