#include "preload/simulator/cudnn/handle.h"

#include <cstring>

#include "preload/simulator/stubs/launch.h"

uint64_t vramtrace::simulator::LaunchFor(void* handle, const char* function) {
  auto* found = cudnn::Handle::From(handle);
  if (found == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  found->Launch(cudnn::kLibrary, function);
  return CUDNN_STATUS_SUCCESS;
}

namespace vramtrace::simulator::cudnn {

size_t ElementBytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return 1;
    default:
      return 0;
  }
}

namespace {

struct Callback {
  unsigned mask = 0;
  void* data = nullptr;
  cudnnCallback_t function = nullptr;
};
Callback g_callback;

}  // namespace
}  // namespace vramtrace::simulator::cudnn

using namespace vramtrace::simulator::cudnn;

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
size_t cudnnGetMaxDeviceVersion() { return CUDNN_MAX_DEVICE_VERSION; }
size_t cudnnGetCudartVersion() { return CUDART_VERSION; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUDNN_MAJOR;
      return CUDNN_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUDNN_MINOR;
      return CUDNN_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUDNN_PATCHLEVEL;
      return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_BAD_PARAM;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  // The thousands of a code are its class (cudnn_graph.h).
  switch (status / 1000) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 1:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2:
      return "CUDNN_STATUS_BAD_PARAM";
    case 3:
      return "CUDNN_STATUS_NOT_SUPPORTED (simulated device)";
    case 4:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case 5:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "unknown cuDNN status";
  }
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (message != nullptr && size > 0) *message = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *handle = reinterpret_cast<cudnnHandle_t>(Handle::Create(kHandleBytes, kLibrary));
  return *handle != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Handle* found = From(handle);
  if (found == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  Handle::Destroy(found, kLibrary);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Handle* found = From(handle);
  if (found == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  found->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  Handle* found = From(handle);
  if (found == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *stream = static_cast<cudaStream_t>(found->stream);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCallback(unsigned mask, void* data, cudnnCallback_t function) {
  g_callback = {mask, data, function};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCallback(unsigned* mask, void** data, cudnnCallback_t* function) {
  if (mask == nullptr || data == nullptr || function == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *mask = g_callback.mask;
  *data = g_callback.data;
  *function = g_callback.function;
  return CUDNN_STATUS_SUCCESS;
}

// One library here stands in for all of cuDNN's parts, so they agree.
cudnnStatus_t cudnnGraphVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck() { return CUDNN_STATUS_SUCCESS; }

}  // extern "C"
