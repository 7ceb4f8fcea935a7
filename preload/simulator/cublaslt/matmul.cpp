// Handles, algorithm choice and the multiplication itself, which does nothing.

#include "preload/simulator/core/work_clock.h"
#include "preload/simulator/cublas/status_names.h"
#include "preload/simulator/cublaslt/tables.h"
#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::cublaslt {
namespace {

constexpr char kLibrary[] = VRAMTRACE_SIM_SONAME;
// See the handle of cuBLAS: no public figure.
constexpr uint64_t kHandleBytes = 0;
constexpr int kComputeCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kComputeCapabilityMinor = 76;

struct State {};
using Handle = LibraryHandle<State, 0x6c744c4153683131>;

Handle* From(cublasLtHandle_t handle) { return Handle::From(handle); }

int ComputeCapability(int device) {
  int major = 0, minor = 0;
  if (DeviceAttribute(device, kComputeCapabilityMajor, &major) != Status::kOk) return 0;
  if (DeviceAttribute(device, kComputeCapabilityMinor, &minor) != Status::kOk) return 0;
  return 10 * major + minor;
}

// Documented in the cuBLAS manual, cublasLtMatmul: FP8 needs compute capability 8.9, the block-scaled FP4
// types 10.0. On an older card the real library returns no algorithm.
int NeededCapability(cublasLtMatrixLayout_t layout) {
  if (!MatrixLayout::Valid(layout)) return 0;
  switch (MatrixLayout::Read(layout, CUBLASLT_MATRIX_LAYOUT_TYPE)) {
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 89;
    case CUDA_R_4F_E2M1:
      return 100;
    default:
      return 0;
  }
}

// The workspace is modelled as 0: PyTorch and other callers pass a block of a fixed size that they allocate
// themselves whatever the algorithm asks for.
void FillResult(cublasLtMatmulHeuristicResult_t* result, const cublasLtMatmulAlgo_t* algorithm) {
  *result = {};
  if (algorithm != nullptr) {
    result->algo = *algorithm;
  } else {
    (void)Algorithm::Initialise(&result->algo, sizeof result->algo);
  }
  result->workspaceSize = 0;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1.0F;
}

// Rows and columns of the result, and the inner length from the first factor's elements.
void CountWork(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t d) {
  const auto elements = [](cublasLtMatrixLayout_t layout) {
    return static_cast<double>(MatrixLayout::Read(layout, CUBLASLT_MATRIX_LAYOUT_ROWS)) *
           static_cast<double>(MatrixLayout::Read(layout, CUBLASLT_MATRIX_LAYOUT_COLS));
  };
  const auto rows = static_cast<double>(MatrixLayout::Read(d, CUBLASLT_MATRIX_LAYOUT_ROWS));
  if (rows <= 0) return;
  const auto type = MatrixLayout::Read(a, CUBLASLT_MATRIX_LAYOUT_TYPE);
  const bool half = type == CUDA_R_16F || type == CUDA_R_16BF;
  WorkMultiply(CurrentDevice(), half ? Multiply::kHalf : Multiply::kFp32,
               2.0 * elements(d) * elements(a) / rows);
}

}  // namespace
}  // namespace vramtrace::simulator::cublaslt

using namespace vramtrace::simulator::cublaslt;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<cublasLtHandle_t>(Handle::Create(kHandleBytes, kLibrary));
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  Handle* found = From(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Handle::Destroy(found, kLibrary);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
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

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return vramtrace::simulator::cublas::StatusName(status);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return vramtrace::simulator::cublas::StatusSentence(status);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  if (requested < 1 || results == nullptr || returned == nullptr || !MatmulDescriptor::Valid(descriptor) ||
      !MatrixLayout::Valid(a) || !MatrixLayout::Valid(b) || !MatrixLayout::Valid(c) ||
      !MatrixLayout::Valid(d) || !Preference::Valid(preference)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *returned = 0;
  const int capability = ComputeCapability(vramtrace::simulator::CurrentDevice());
  for (cublasLtMatrixLayout_t layout : {a, b, c, d}) {
    if (capability < NeededCapability(layout)) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  FillResult(&results[0], nullptr);
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t, int requested,
                                        int ids[], int* returned) {
  if (requested < 1 || ids == nullptr || returned == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  ids[0] = 0;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t, int id,
                                      cublasLtMatmulAlgo_t* algorithm) {
  if (algorithm == nullptr || id != 0) return CUBLAS_STATUS_INVALID_VALUE;
  return Algorithm::Initialise(algorithm, sizeof *algorithm);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!MatmulDescriptor::Valid(descriptor) || !MatrixLayout::Valid(a) || !MatrixLayout::Valid(b) ||
      !MatrixLayout::Valid(c) || !MatrixLayout::Valid(d) || !Algorithm::Valid(algorithm) ||
      result == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  FillResult(result, algorithm);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor, const void*, const void*,
                              cublasLtMatrixLayout_t a, const void*, cublasLtMatrixLayout_t b, const void*,
                              const void*, cublasLtMatrixLayout_t c, void*, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  if (!MatmulDescriptor::Valid(descriptor) || !MatrixLayout::Valid(a) || !MatrixLayout::Valid(b) ||
      !MatrixLayout::Valid(c) || !MatrixLayout::Valid(d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Handle::LaunchOn(stream, kLibrary, "cublasLtMatmul");
  CountWork(a, d);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t, cublasLtMatrixTransformDesc_t descriptor,
                                       const void*, const void*, cublasLtMatrixLayout_t, const void*,
                                       const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                                       cudaStream_t stream) {
  if (!Transform::Valid(descriptor)) return CUBLAS_STATUS_INVALID_VALUE;
  Handle::LaunchOn(stream, kLibrary, "cublasLtMatrixTransform");
  return CUBLAS_STATUS_SUCCESS;
}

// Real limits and logs concern the real library's work; there is none here.
cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t* capacity) {
  if (capacity == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t) { return CUBLAS_STATUS_SUCCESS; }
unsigned cublasLtDisableCpuInstructionsSetMask(unsigned) { return 0; }
cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerOpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetLevel(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }

}  // extern "C"
