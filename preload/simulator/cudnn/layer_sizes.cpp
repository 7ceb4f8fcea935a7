// Buffers that PyTorch allocates for normalization, CTC loss and dropout because cuDNN asks for them.

#include "preload/simulator/cudnn/descriptors.h"
#include "preload/simulator/cudnn/handle.h"

using namespace vramtrace::simulator::cudnn;

namespace {

// Batch normalization without fused activation keeps nothing beyond mean and variance, which are tensors of
// the caller; CTC's buffer is small and lives for one call. Modelled as 0 (README.md, What is modelled).
cudnnStatus_t NoBytes(cudnnHandle_t handle, size_t* bytes) {
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}

// A random generator state for every thread that can be resident. The real size is not published.
constexpr uint64_t kStateBytesAThread = 16;
constexpr int kMultiprocessors = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kResidentThreads = 39;  // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR

cudnnStatus_t Remember(cudnnDropoutDescriptor_t descriptor, float probability, void* states,
                       unsigned long long seed) {
  Dropout* dropout = ValuesOf(descriptor);
  if (dropout == nullptr || !(probability >= 0 && probability <= 1)) return CUDNN_STATUS_BAD_PARAM;
  *dropout = {probability, states, seed};
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, size_t* bytes) {
  return NoBytes(handle, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t,
    size_t* bytes) {
  return NoBytes(handle, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t,
                                                                   cudnnBatchNormOps_t,
                                                                   const cudnnActivationDescriptor_t,
                                                                   const cudnnTensorDescriptor_t,
                                                                   size_t* bytes) {
  return NoBytes(handle, bytes);
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t,
                                           const cudnnTensorDescriptor_t, const int*, const int*, const int*,
                                           cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t, size_t* bytes) {
  return NoBytes(handle, bytes);
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t,
                                              cudnnCTCLossDescriptor_t, const cudnnTensorDescriptor_t,
                                              const cudnnTensorDescriptor_t, size_t* bytes) {
  return NoBytes(handle, bytes);
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes) {
  const Handle* found = From(handle);
  if (found == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  int multiprocessors = 0, threads = 0;
  using vramtrace::simulator::DeviceAttribute;
  using vramtrace::simulator::Status;
  if (DeviceAttribute(found->device, kMultiprocessors, &multiprocessors) != Status::kOk ||
      DeviceAttribute(found->device, kResidentThreads, &threads) != Status::kOk) {
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
  *bytes = static_cast<uint64_t>(multiprocessors) * static_cast<uint64_t>(threads) * kStateBytesAThread;
  return CUDNN_STATUS_SUCCESS;
}

// One bit an element, as the documentation's reserve space for the mask.
cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t descriptor, size_t* bytes) {
  const Tensor* tensor = ValuesOf(descriptor);
  if (tensor == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  uint64_t elements = 1;
  for (int i = 0; i < tensor->rank; ++i)
    elements *= static_cast<uint64_t>(tensor->sizes[static_cast<size_t>(i)]);
  *bytes = (elements + 7) / 8;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t, float probability,
                                        void* states, size_t, unsigned long long seed) {
  return Remember(descriptor, probability, states, seed);
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t,
                                            float probability, void* states, size_t,
                                            unsigned long long seed) {
  return Remember(descriptor, probability, states, seed);
}

}  // extern "C"
