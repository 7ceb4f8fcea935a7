#pragma once
// Descriptors of cuDNN's older, function by function interface: each keeps what it was given.

#include <cudnn.h>

#include <array>
#include <cstdint>

#include "preload/simulator/cudnn/rnn_sizes.h"

namespace vramtrace::simulator::cudnn {

using Dimensions = std::array<int, CUDNN_DIM_MAX>;

struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int rank = 0;
  Dimensions sizes{};
  Dimensions strides{};

  // Fully packed, last dimension innermost.
  void SetPacked(cudnnDataType_t element, const int* given, int dimensions);
  // From the first to behind the last element, as strides place them.
  [[nodiscard]] uint64_t Bytes() const;
};

struct Filter {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int rank = 0;
  Dimensions sizes{};
};

struct Convolution {
  int spatial_rank = 0;
  Dimensions padding{};
  Dimensions strides{};
  Dimensions dilation{};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
};

struct Dropout {
  float probability = 0;
  void* states = nullptr;
  unsigned long long seed = 0;
};

struct Rnn {
  RnnShape shape;
  cudnnRNNAlgo_t algorithm = CUDNN_RNN_ALGO_STANDARD;
  cudnnRNNInputMode_t input_mode = CUDNN_LINEAR_INPUT;
  cudnnDataType_t math_precision = CUDNN_DATA_FLOAT;
  cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;
  cudnnDropoutDescriptor_t dropout = nullptr;
  uint32_t flags = 0;
};

struct RnnData {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  int max_sequence = 0;
  int batch = 0;
  int vector = 0;
};

// Set and never asked for: nothing of them decides a size.
struct Activation {};
struct Pooling {};
struct SpatialTransformer {};
struct CtcLoss {};

template <typename Values, uint64_t kMark>
struct Marked {
  uint64_t mark = kMark;
  Values values;
};

// The values behind a descriptor handle; nullptr when it is null or another kind of descriptor. One
// specialisation a handle type.
template <typename Handle>
struct DescriptorOf;

#define VRAMTRACE_CUDNN_DESCRIPTOR(handle, type, number)        \
  template <>                                                   \
  struct DescriptorOf<handle> {                                 \
    using Object = Marked<type, 0x644e4e0000000000 + (number)>; \
    using Values = type;                                        \
  };
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnTensorDescriptor_t, Tensor, 1)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnFilterDescriptor_t, Filter, 2)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnConvolutionDescriptor_t, Convolution, 3)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnDropoutDescriptor_t, Dropout, 4)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnRNNDescriptor_t, Rnn, 5)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnRNNDataDescriptor_t, RnnData, 6)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnActivationDescriptor_t, Activation, 7)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnPoolingDescriptor_t, Pooling, 8)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnSpatialTransformerDescriptor_t, SpatialTransformer, 9)
VRAMTRACE_CUDNN_DESCRIPTOR(cudnnCTCLossDescriptor_t, CtcLoss, 10)
#undef VRAMTRACE_CUDNN_DESCRIPTOR

template <typename Handle>
[[nodiscard]] auto* ValuesOf(Handle handle) {
  using Object = typename DescriptorOf<Handle>::Object;
  auto* object = reinterpret_cast<Object*>(handle);
  return object != nullptr && object->mark == Object{}.mark ? &object->values : nullptr;
}

}  // namespace vramtrace::simulator::cudnn
