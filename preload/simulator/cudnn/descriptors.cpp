#include "preload/simulator/cudnn/descriptors.h"

#include <algorithm>
#include <new>

#include "preload/simulator/cudnn/handle.h"

namespace vramtrace::simulator::cudnn {

void Tensor::SetPacked(cudnnDataType_t element, const int* given, int dimensions) {
  type = element;
  rank = dimensions;
  int stride = 1;
  for (int i = dimensions - 1; i >= 0; --i) {
    sizes[static_cast<size_t>(i)] = given[i];
    strides[static_cast<size_t>(i)] = stride;
    stride *= std::max(given[i], 1);
  }
}

uint64_t Tensor::Bytes() const {
  uint64_t last = 0;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    if (sizes[i] <= 0) return 0;
    last += static_cast<uint64_t>(sizes[i] - 1) * static_cast<uint64_t>(strides[i]);
  }
  return rank == 0 ? 0 : (last + 1) * ElementBytes(type);
}

namespace {

template <typename Handle>
cudnnStatus_t Create(Handle* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *handle = reinterpret_cast<Handle>(new (std::nothrow) typename DescriptorOf<Handle>::Object);
  return *handle != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

template <typename Handle>
cudnnStatus_t Destroy(Handle handle) {
  if (handle == nullptr) return CUDNN_STATUS_SUCCESS;
  if (ValuesOf(handle) == nullptr) return CUDNN_STATUS_BAD_PARAM;
  auto* object = reinterpret_cast<typename DescriptorOf<Handle>::Object*>(handle);
  object->mark = 0;
  delete object;
  return CUDNN_STATUS_SUCCESS;
}

bool GoodRank(int rank) { return rank > 0 && rank <= CUDNN_DIM_MAX; }

template <typename Handle>
cudnnStatus_t Accept(Handle handle) {
  return ValuesOf(handle) != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

}  // namespace
}  // namespace vramtrace::simulator::cudnn

using namespace vramtrace::simulator::cudnn;

extern "C" {

#define VRAMTRACE_CUDNN_LIFE(name)                                                                          \
  cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t* handle) { return Create(handle); } \
  cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t handle) { return Destroy(handle); }
VRAMTRACE_CUDNN_LIFE(Tensor)
VRAMTRACE_CUDNN_LIFE(Filter)
VRAMTRACE_CUDNN_LIFE(Convolution)
VRAMTRACE_CUDNN_LIFE(Dropout)
VRAMTRACE_CUDNN_LIFE(RNN)
VRAMTRACE_CUDNN_LIFE(RNNData)
VRAMTRACE_CUDNN_LIFE(Activation)
VRAMTRACE_CUDNN_LIFE(Pooling)
VRAMTRACE_CUDNN_LIFE(SpatialTransformer)
VRAMTRACE_CUDNN_LIFE(CTCLoss)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int rank,
                                         const int sizes[], const int strides[]) {
  Tensor* tensor = ValuesOf(descriptor);
  if (tensor == nullptr || !GoodRank(rank) || sizes == nullptr || strides == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  tensor->type = type;
  tensor->rank = rank;
  std::copy_n(sizes, rank, tensor->sizes.begin());
  std::copy_n(strides, rank, tensor->strides.begin());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int n,
                                           int c, int h, int w, int stride_n, int stride_c, int stride_h,
                                           int stride_w) {
  const int sizes[] = {n, c, h, w};
  const int strides[] = {stride_n, stride_c, stride_h, stride_w};
  return cudnnSetTensorNdDescriptor(descriptor, type, 4, sizes, strides);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (format == CUDNN_TENSOR_NCHW) {
    return cudnnSetTensor4dDescriptorEx(descriptor, type, n, c, h, w, c * h * w, h * w, w, 1);
  }
  if (format == CUDNN_TENSOR_NHWC) {
    return cudnnSetTensor4dDescriptorEx(descriptor, type, n, c, h, w, c * h * w, 1, c * w, c);
  }
  return CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t descriptor, int requested,
                                         cudnnDataType_t* type, int* rank, int sizes[], int strides[]) {
  const Tensor* tensor = ValuesOf(descriptor);
  if (tensor == nullptr || type == nullptr || rank == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *type = tensor->type;
  *rank = tensor->rank;
  const int given = std::min(requested, tensor->rank);
  if (given <= 0) return CUDNN_STATUS_SUCCESS;
  if (sizes != nullptr) std::copy_n(tensor->sizes.begin(), given, sizes);
  if (strides != nullptr) std::copy_n(tensor->strides.begin(), given, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t descriptor, size_t* bytes) {
  const Tensor* tensor = ValuesOf(descriptor);
  if (tensor == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = tensor->Bytes();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int sizes[]) {
  Filter* filter = ValuesOf(descriptor);
  if (filter == nullptr || !GoodRank(rank) || sizes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  filter->type = type;
  filter->format = format;
  filter->rank = rank;
  std::copy_n(sizes, rank, filter->sizes.begin());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t descriptor, int requested,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format, int* rank,
                                         int sizes[]) {
  const Filter* filter = ValuesOf(descriptor);
  if (filter == nullptr || type == nullptr || format == nullptr || rank == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  *type = filter->type;
  *format = filter->format;
  *rank = filter->rank;
  const int given = std::min(requested, filter->rank);
  if (given > 0 && sizes != nullptr) std::copy_n(filter->sizes.begin(), given, sizes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t descriptor, cudnnActivationMode_t,
                                           cudnnNanPropagation_t, double) {
  return Accept(descriptor);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor, cudnnPoolingMode_t,
                                          cudnnNanPropagation_t, int, int, int, int, int, int) {
  return Accept(descriptor);
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t descriptor,
                                                     cudnnSamplerType_t, cudnnDataType_t, const int,
                                                     const int[]) {
  return Accept(descriptor);
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t descriptor, cudnnDataType_t,
                                          cudnnLossNormalizationMode_t, cudnnNanPropagation_t) {
  return Accept(descriptor);
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t descriptor, cudnnDataType_t,
                                           cudnnLossNormalizationMode_t, cudnnCTCGradMode_t, int) {
  return Accept(descriptor);
}

}  // extern "C"
