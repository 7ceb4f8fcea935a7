// The older convolution interface: one algorithm for each direction, with the modelled workspace.

#include <algorithm>

#include "preload/simulator/cudnn/descriptors.h"
#include "preload/simulator/cudnn/handle.h"
#include "preload/simulator/cudnn/workspace.h"

using namespace vramtrace::simulator::cudnn;

namespace {

// The algorithm that real heuristics answer most often for training shapes; only its name reaches the caller.
template <typename Performance, typename Algorithm>
cudnnStatus_t OneAlgorithm(cudnnHandle_t handle, Algorithm algorithm, cudnnConvolutionDescriptor_t descriptor,
                           int requested, int* returned, Performance* results) {
  const Convolution* convolution = ValuesOf(descriptor);
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (convolution == nullptr || requested < 1 || returned == nullptr || results == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  results[0] = {};
  results[0].algo = algorithm;
  results[0].status = CUDNN_STATUS_SUCCESS;
  results[0].time = -1.0F;  // documented for results that were not measured
  results[0].memory = static_cast<size_t>(PlanWorkspaceBytes());
  results[0].determinism = CUDNN_DETERMINISTIC;
  results[0].mathType = convolution->math;
  *returned = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Workspace(cudnnHandle_t handle, cudnnConvolutionDescriptor_t descriptor, size_t* bytes) {
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (ValuesOf(descriptor) == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = static_cast<size_t>(PlanWorkspaceBytes());
  return CUDNN_STATUS_SUCCESS;
}

constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kBackwardData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr auto kBackwardFilter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

}  // namespace

extern "C" {

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t descriptor, int rank,
                                              const int padding[], const int strides[], const int dilation[],
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  Convolution* convolution = ValuesOf(descriptor);
  if (convolution == nullptr || rank < 1 || rank > CUDNN_DIM_MAX || padding == nullptr ||
      strides == nullptr || dilation == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  convolution->spatial_rank = rank;
  std::copy_n(padding, rank, convolution->padding.begin());
  std::copy_n(strides, rank, convolution->strides.begin());
  std::copy_n(dilation, rank, convolution->dilation.begin());
  convolution->mode = mode;
  convolution->compute = compute;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  Convolution* convolution = ValuesOf(descriptor);
  if (convolution == nullptr || groups < 1) return CUDNN_STATUS_BAD_PARAM;
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t math) {
  Convolution* convolution = ValuesOf(descriptor);
  if (convolution == nullptr) return CUDNN_STATUS_BAD_PARAM;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t,
                                                     const cudnnFilterDescriptor_t,
                                                     const cudnnConvolutionDescriptor_t descriptor,
                                                     const cudnnTensorDescriptor_t, const int requested,
                                                     int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  return OneAlgorithm(handle, kForward, descriptor, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t,
                                                     const void*, const cudnnFilterDescriptor_t, const void*,
                                                     const cudnnConvolutionDescriptor_t descriptor,
                                                     const cudnnTensorDescriptor_t, void*,
                                                     const int requested, int* returned,
                                                     cudnnConvolutionFwdAlgoPerf_t* results, void*, size_t) {
  return OneAlgorithm(handle, kForward, descriptor, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t,
                                                      const cudnnFilterDescriptor_t,
                                                      const cudnnConvolutionDescriptor_t descriptor,
                                                      const cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t, size_t* bytes) {
  return Workspace(handle, descriptor, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t,
                                                          const cudnnTensorDescriptor_t,
                                                          const cudnnConvolutionDescriptor_t descriptor,
                                                          const cudnnTensorDescriptor_t, const int requested,
                                                          int* returned,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return OneAlgorithm(handle, kBackwardData, descriptor, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t, const void*, const cudnnTensorDescriptor_t,
    const void*, const cudnnConvolutionDescriptor_t descriptor, const cudnnTensorDescriptor_t, void*,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results, void*, size_t) {
  return OneAlgorithm(handle, kBackwardData, descriptor, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle,
                                                           const cudnnFilterDescriptor_t,
                                                           const cudnnTensorDescriptor_t,
                                                           const cudnnConvolutionDescriptor_t descriptor,
                                                           const cudnnTensorDescriptor_t,
                                                           cudnnConvolutionBwdDataAlgo_t, size_t* bytes) {
  return Workspace(handle, descriptor, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t descriptor, const cudnnFilterDescriptor_t, const int requested,
    int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return OneAlgorithm(handle, kBackwardFilter, descriptor, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t,
    const void*, const cudnnConvolutionDescriptor_t descriptor, const cudnnFilterDescriptor_t, void*,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results, void*, size_t) {
  return OneAlgorithm(handle, kBackwardFilter, descriptor, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle,
                                                             const cudnnTensorDescriptor_t,
                                                             const cudnnTensorDescriptor_t,
                                                             const cudnnConvolutionDescriptor_t descriptor,
                                                             const cudnnFilterDescriptor_t,
                                                             cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  return Workspace(handle, descriptor, bytes);
}

}  // extern "C"
