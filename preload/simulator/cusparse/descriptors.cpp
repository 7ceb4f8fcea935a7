// Handles, and descriptors of matrices, vectors and algorithms.

#include "preload/simulator/cusparse/descriptors.h"

#include "preload/simulator/stubs/launch.h"

using vramtrace::simulator::cusparse::From;
using vramtrace::simulator::cusparse::FromMatrix;
using vramtrace::simulator::cusparse::Handle;
using vramtrace::simulator::cusparse::kHandleBytes;
using vramtrace::simulator::cusparse::kLibrary;
using vramtrace::simulator::cusparse::Matrix;

namespace {

template <typename Out>
cusparseStatus_t Make(Out* out, int64_t rows, int64_t columns, int64_t stored, cudaDataType type) {
  if (out == nullptr || rows < 0 || columns < 0 || stored < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  *out = reinterpret_cast<Out>(new Matrix{Matrix::kMark, rows, columns, stored, type});
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t Remove(const void* pointer) {
  auto* matrix = const_cast<Matrix*>(FromMatrix(pointer));
  if (matrix == nullptr) return pointer == nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
  matrix->mark = 0;
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t Check(const void* pointer) {
  return FromMatrix(pointer) != nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

template <typename Out>
cusparseStatus_t MakeOther(Out* out) {
  return Make(out, 0, 0, 0, CUDA_R_32F);
}

}  // namespace

namespace vramtrace::simulator {

uint64_t LaunchFor(void* handle, const char* function) {
  auto* found = Handle::From(handle);
  if (found == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  found->Launch(kLibrary, function);
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace vramtrace::simulator

extern "C" {

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  if (handle == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  auto* made = Handle::Create(kHandleBytes, kLibrary);
  if (made == nullptr) return CUSPARSE_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cusparseHandle_t>(made);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  auto* found = From(handle);
  if (found == nullptr) return handle == nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
  Handle::Destroy(found, kLibrary);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  auto* found = From(handle);
  if (found == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  found->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t* stream) {
  auto* found = From(handle);
  if (found == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  *stream = static_cast<cudaStream_t>(found->stream);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode) {
  auto* found = From(handle);
  if (found == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  found->state.pointer_mode = mode;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t* mode) {
  auto* found = From(handle);
  if (found == nullptr) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (mode == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
  *mode = found->state.pointer_mode;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t stored, void*, void*, void*, cusparseIndexType_t,
                                   cusparseIndexBase_t, cudaDataType type) {
  return Make(matrix, rows, columns, stored, type);
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t stored, void*, void*, void*, cusparseIndexType_t,
                                   cusparseIndexType_t, cusparseIndexBase_t, cudaDataType type) {
  return Make(matrix, rows, columns, stored, type);
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t,
                                     void*, cudaDataType type, cusparseOrder_t) {
  return Make(matrix, rows, columns, rows * columns, type);
}

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t size, void*, cudaDataType type) {
  return Make(vector, size, 1, size, type);
}

cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                      int64_t* stored) {
  const Matrix* found = FromMatrix(matrix);
  if (found == nullptr || rows == nullptr || columns == nullptr || stored == nullptr) {
    return CUSPARSE_STATUS_INVALID_VALUE;
  }
  *rows = found->rows;
  *columns = found->columns;
  *stored = found->stored;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) { return Remove(matrix); }
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) { return Remove(matrix); }
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) { return Remove(vector); }
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void*, void*, void*) {
  return Check(matrix);
}
cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t matrix, int, int64_t, int64_t) {
  return Check(matrix);
}
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t, void*,
                                           size_t) {
  return Check(matrix);
}
cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t matrix, int, int64_t) {
  return Check(matrix);
}

cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t* description) { return MakeOther(description); }
cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t description) { return Remove(description); }
cusparseStatus_t cusparseSetMatType(cusparseMatDescr_t description, cusparseMatrixType_t) {
  return Check(description);
}
cusparseStatus_t cusparseSetMatFillMode(cusparseMatDescr_t description, cusparseFillMode_t) {
  return Check(description);
}
cusparseStatus_t cusparseSetMatDiagType(cusparseMatDescr_t description, cusparseDiagType_t) {
  return Check(description);
}
cusparseStatus_t cusparseSetMatIndexBase(cusparseMatDescr_t description, cusparseIndexBase_t) {
  return Check(description);
}

cusparseStatus_t cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t* made) { return MakeOther(made); }
cusparseStatus_t cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t made) { return Remove(made); }
cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t* made) { return MakeOther(made); }
cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t made) { return Remove(made); }
cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t* made) { return MakeOther(made); }
cusparseStatus_t cusparseSpSV_destroyDescr(cusparseSpSVDescr_t made) { return Remove(made); }

}  // extern "C"
