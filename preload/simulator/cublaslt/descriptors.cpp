// Creation, setting and reading of cuBLASLt's descriptors: five types with the same shape of interface.

#include <new>

#include "preload/simulator/core/log.h"
#include "preload/simulator/cublaslt/tables.h"

namespace vramtrace::simulator::cublaslt {
namespace {

template <typename Descriptor, typename Block>
cublasStatus_t Create(Block** block) {
  if (block == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *block = new (std::nothrow) Block;
  if (*block == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  return Descriptor::Initialise(*block, sizeof **block);
}

template <typename Descriptor, typename Block>
cublasStatus_t Destroy(Block* block) {
  if (block != nullptr && !Descriptor::Valid(block)) return CUBLAS_STATUS_INVALID_VALUE;
  delete block;
  return CUBLAS_STATUS_SUCCESS;
}

// An attribute that the headers of this build do not know is a program's newer than the stand-in: named,
// because INVALID_VALUE alone would look like the program's own mistake.
template <typename Descriptor, typename Block>
cublasStatus_t Set(Block* block, int attribute, const void* value, size_t bytes, const char* function) {
  if (!Descriptor::Knows(attribute)) {
    vramtrace_sim_unsupported(VRAMTRACE_SIM_SONAME, function);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return Descriptor::Set(block, attribute, value, bytes);
}

void FillLayout(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows, uint64_t columns,
                int64_t ld) {
  MatrixLayout::Write(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint64_t>(type));
  MatrixLayout::Write(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
  MatrixLayout::Write(layout, CUBLASLT_MATRIX_LAYOUT_COLS, columns);
  MatrixLayout::Write(layout, CUBLASLT_MATRIX_LAYOUT_LD, static_cast<uint64_t>(ld));
}

#if CUBLAS_VER_MAJOR >= 13
void FillGroupedLayout(cublasLtMatrixLayout_t layout, cudaDataType type, int groups, const void* rows,
                       const void* columns, const void* ld) {
  MatrixLayout::Write(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint64_t>(type));
  MatrixLayout::Write(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<uint64_t>(groups));
  MatrixLayout::Write(layout, CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_ARRAY, reinterpret_cast<uint64_t>(rows));
  MatrixLayout::Write(layout, CUBLASLT_GROUPED_MATRIX_LAYOUT_COLS_ARRAY, reinterpret_cast<uint64_t>(columns));
  MatrixLayout::Write(layout, CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY, reinterpret_cast<uint64_t>(ld));
}
#endif

void FillMatmul(cublasLtMatmulDesc_t descriptor, cublasComputeType_t compute, cudaDataType_t scale) {
  MatmulDescriptor::Write(descriptor, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, static_cast<uint64_t>(compute));
  MatmulDescriptor::Write(descriptor, CUBLASLT_MATMUL_DESC_SCALE_TYPE, static_cast<uint64_t>(scale));
}

}  // namespace
}  // namespace vramtrace::simulator::cublaslt

using namespace vramtrace::simulator::cublaslt;

// One row a descriptor type: the name in the functions, handle type, attribute type, table.
#define VRAMTRACE_LT_DESCRIPTORS(X)                                                                      \
  X(cublasLtMatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, MatrixLayout)         \
  X(cublasLtMatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, MatmulDescriptor)          \
  X(cublasLtMatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t, \
    Transform)                                                                                           \
  X(cublasLtMatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, Preference)

extern "C" {

#define VRAMTRACE_LT_DESCRIPTOR(name, handle, attribute_type, table)                                        \
  cublasStatus_t name##Destroy(handle descriptor) { return Destroy<table>(descriptor); }                    \
  cublasStatus_t name##SetAttribute(handle descriptor, attribute_type attribute, const void* value,         \
                                    size_t bytes) {                                                         \
    return Set<table>(descriptor, static_cast<int>(attribute), value, bytes, #name "SetAttribute");         \
  }                                                                                                         \
  cublasStatus_t name##GetAttribute(handle descriptor, attribute_type attribute, void* value, size_t bytes, \
                                    size_t* written) {                                                      \
    return table::Get(descriptor, static_cast<int>(attribute), value, bytes, written);                      \
  }
VRAMTRACE_LT_DESCRIPTORS(VRAMTRACE_LT_DESCRIPTOR)
#if CUBLAS_VER_MAJOR >= 13
VRAMTRACE_LT_DESCRIPTOR(cublasLtEmulationDesc, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t,
                        Emulation)
#endif

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t bytes,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld) {
  const cublasStatus_t status = MatrixLayout::Initialise(layout, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) FillLayout(layout, type, rows, columns, ld);
  return status;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  const cublasStatus_t status = Create<MatrixLayout>(layout);
  if (status == CUBLAS_STATUS_SUCCESS) FillLayout(*layout, type, rows, columns, ld);
  return status;
}

#if CUBLAS_VER_MAJOR >= 13
cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t bytes,
                                                        cudaDataType type, int groups, const void* rows,
                                                        const void* columns, const void* ld) {
  const cublasStatus_t status = MatrixLayout::Initialise(layout, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) FillGroupedLayout(layout, type, groups, rows, columns, ld);
  return status;
}

cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                 int groups, const void* rows, const void* columns,
                                                 const void* ld) {
  const cublasStatus_t status = Create<MatrixLayout>(layout);
  if (status == CUBLAS_STATUS_SUCCESS) FillGroupedLayout(*layout, type, groups, rows, columns, ld);
  return status;
}
#endif

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t descriptor, size_t bytes,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  const cublasStatus_t status = MatmulDescriptor::Initialise(descriptor, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) FillMatmul(descriptor, compute, scale);
  return status;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  const cublasStatus_t status = Create<MatmulDescriptor>(descriptor);
  if (status == CUBLAS_STATUS_SUCCESS) FillMatmul(*descriptor, compute, scale);
  return status;
}

cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t descriptor,
                                                        size_t bytes, cudaDataType scale) {
  const cublasStatus_t status = Transform::Initialise(descriptor, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) {
    Transform::Write(descriptor, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, static_cast<uint64_t>(scale));
  }
  return status;
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* descriptor,
                                                 cudaDataType scale) {
  const cublasStatus_t status = Create<Transform>(descriptor);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return cublasLtMatrixTransformDescInit_internal(*descriptor, sizeof **descriptor, scale);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t bytes) {
  return Preference::Initialise(preference, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Create<Preference>(preference);
}

#if CUBLAS_VER_MAJOR >= 13
cublasStatus_t cublasLtEmulationDescInit_internal(cublasLtEmulationDesc_t descriptor, size_t bytes) {
  return Emulation::Initialise(descriptor, bytes);
}

cublasStatus_t cublasLtEmulationDescCreate(cublasLtEmulationDesc_t* descriptor) {
  return Create<Emulation>(descriptor);
}
#endif

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return Algorithm::Set(algorithm, static_cast<int>(attribute), value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
  return Algorithm::Get(algorithm, static_cast<int>(attribute), value, bytes, written);
}

}  // extern "C"
