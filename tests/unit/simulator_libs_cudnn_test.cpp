// Sizes that become tensors of the program: recurrent weights, dropout states, descriptors.

#include <cudnn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "preload/simulator/cudnn/rnn_sizes.h"

namespace {

using vramtrace::simulator::cudnn::RnnBias;
using vramtrace::simulator::cudnn::RnnMatrix;
using vramtrace::simulator::cudnn::RnnPart;
using vramtrace::simulator::cudnn::RnnShape;
using vramtrace::simulator::cudnn::RnnWeightBytes;

struct RnnCase {
  const char* name;
  RnnShape shape;
  uint64_t parameters;  // counted as torch.nn counts them
};

// torch.nn.LSTM(10, 20, 2, bidirectional=True) has 2 * (4*20*(10+20) + 2*80) + 2 * (4*20*(40+20) + 2*80)
// parameters, and so on; none of the sums below come from the code under test.
const RnnCase kCases[] = {
    {"LstmOneLayer",
     {CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_FLOAT, 10, 20, 20, 1},
     4 * 20 * 30 + 160},
    {"LstmTwoLayersBidirectional",
     {CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_BIDIRECTIONAL, CUDNN_DATA_FLOAT, 10, 20, 20, 2},
     2 * (4 * 20 * 30 + 160) + 2 * (4 * 20 * 60 + 160)},
    {"LstmProjection",
     {CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_FLOAT, 10, 20, 5, 2},
     (4 * 20 * 15 + 5 * 20 + 160) + (4 * 20 * 10 + 5 * 20 + 160)},
    {"GruThreeLayers",
     {CUDNN_GRU, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_HALF, 7, 11, 11, 3},
     (3 * 11 * 18 + 66) + 2 * (3 * 11 * 22 + 66)},
    {"TanhWithoutBias",
     {CUDNN_RNN_TANH, CUDNN_RNN_NO_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_FLOAT, 8, 8, 8, 2},
     2 * 128},
    {"ReluSingleInputBias",
     {CUDNN_RNN_RELU, CUDNN_RNN_SINGLE_INP_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_DOUBLE, 8, 4, 4, 1},
     4 * 12 + 4},
    {"GruSingleRecurrentBias",
     {CUDNN_GRU, CUDNN_RNN_SINGLE_REC_BIAS, CUDNN_BIDIRECTIONAL, CUDNN_DATA_BFLOAT16, 6, 4, 4, 1},
     2 * (3 * 4 * 10 + 12)},
};

uint64_t Width(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

class RnnSizes : public testing::TestWithParam<RnnCase> {};

TEST_P(RnnSizes, WeightSpaceIsTheParameters) {
  const RnnCase& c = GetParam();
  EXPECT_EQ(RnnWeightBytes(c.shape), c.parameters * Width(c.shape.type));
}

// Matrices and biases of all layers lie side by side: no gap, no overlap, all of the space.
TEST_P(RnnSizes, PartsTileTheWeightSpace) {
  const RnnShape& shape = GetParam().shape;
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  auto add = [&](const RnnPart& part) {
    if (part.rows == 0) return;
    const uint64_t bytes =
        static_cast<uint64_t>(part.rows) * static_cast<uint64_t>(part.columns) * Width(shape.type);
    parts.emplace_back(part.offset_bytes, bytes);
  };
  for (int layer = 0; layer < shape.PseudoLayers(); ++layer) {
    for (int linear = 0; linear <= 2 * shape.Gates(); ++linear) {
      add(RnnMatrix(shape, layer, linear));
      add(RnnBias(shape, layer, linear));
    }
  }
  std::sort(parts.begin(), parts.end());
  uint64_t end = 0;
  for (const auto& [offset, bytes] : parts) {
    EXPECT_EQ(offset, end);
    end = offset + bytes;
  }
  EXPECT_EQ(end, RnnWeightBytes(shape));
}

INSTANTIATE_TEST_SUITE_P(Cells, RnnSizes, testing::ValuesIn(kCases),
                         [](const auto& cell) { return cell.param.name; });

class Cudnn : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS); }
  void TearDown() override { EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS); }
  cudnnHandle_t handle_ = nullptr;
};

TEST_F(Cudnn, VersionIsThatOfTheHeaders) {
  EXPECT_EQ(cudnnGetVersion(), static_cast<size_t>(CUDNN_VERSION));
  int major = 0;
  EXPECT_EQ(cudnnGetProperty(MAJOR_VERSION, &major), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(major, CUDNN_MAJOR);
}

TEST_F(Cudnn, KeepsTheStream) {
  auto stream = reinterpret_cast<cudaStream_t>(0x1234);
  EXPECT_EQ(cudnnSetStream(handle_, stream), CUDNN_STATUS_SUCCESS);
  cudaStream_t kept = nullptr;
  EXPECT_EQ(cudnnGetStream(handle_, &kept), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(kept, stream);
}

TEST_F(Cudnn, RefusesWhatIsNoHandle) {
  uint64_t other = 0;
  size_t bytes = 0;
  auto* stale = reinterpret_cast<cudnnHandle_t>(&other);
  EXPECT_EQ(cudnnDropoutGetStatesSize(stale, &bytes), CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cudnnDropoutGetStatesSize(nullptr, &bytes), CUDNN_STATUS_NOT_INITIALIZED);
}

TEST_F(Cudnn, DropoutStatesGrowWithTheCard) {
  size_t bytes = 0;
  EXPECT_EQ(cudnnDropoutGetStatesSize(handle_, &bytes), CUDNN_STATUS_SUCCESS);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(bytes % 16, 0u);
}

TEST_F(Cudnn, TensorDescriptorReturnsWhatItWasGiven) {
  cudnnTensorDescriptor_t tensor = nullptr;
  ASSERT_EQ(cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
  const int sizes[] = {2, 3, 4, 5, 6};
  const int strides[] = {360, 120, 30, 6, 1};
  ASSERT_EQ(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_HALF, 5, sizes, strides), CUDNN_STATUS_SUCCESS);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int rank = 0;
  int sizes_read[5] = {};
  int strides_read[5] = {};
  EXPECT_EQ(cudnnGetTensorNdDescriptor(tensor, 5, &type, &rank, sizes_read, strides_read),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(type, CUDNN_DATA_HALF);
  EXPECT_EQ(rank, 5);
  EXPECT_TRUE(std::equal(sizes, sizes + 5, sizes_read));
  EXPECT_TRUE(std::equal(strides, strides + 5, strides_read));
  size_t bytes = 0;
  EXPECT_EQ(cudnnGetTensorSizeInBytes(tensor, &bytes), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(bytes, 2u * 720u);
  EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_HALF, CUDNN_DIM_MAX + 1, sizes, strides),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnDestroyTensorDescriptor(tensor), CUDNN_STATUS_SUCCESS);
}

// One kind of descriptor is never read as another.
TEST_F(Cudnn, RefusesAnotherKindOfDescriptor) {
  cudnnFilterDescriptor_t filter = nullptr;
  ASSERT_EQ(cudnnCreateFilterDescriptor(&filter), CUDNN_STATUS_SUCCESS);
  size_t bytes = 0;
  EXPECT_EQ(cudnnGetTensorSizeInBytes(reinterpret_cast<cudnnTensorDescriptor_t>(filter), &bytes),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnDestroyFilterDescriptor(filter), CUDNN_STATUS_SUCCESS);
}

class CudnnRnn : public Cudnn {
 protected:
  void SetUp() override {
    Cudnn::SetUp();
    ASSERT_EQ(cudnnCreateRNNDescriptor(&rnn_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetRNNDescriptor_v8(rnn_, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                       CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
                                       CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, 10, 20, 20, 1, nullptr, 0),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateRNNDataDescriptor(&data_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetRNNDataDescriptor(data_, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 5,
                                        3, 10, nullptr, nullptr),
              CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cudnnDestroyRNNDataDescriptor(data_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnDestroyRNNDescriptor(rnn_), CUDNN_STATUS_SUCCESS);
    Cudnn::TearDown();
  }
  cudnnRNNDescriptor_t rnn_ = nullptr;
  cudnnRNNDataDescriptor_t data_ = nullptr;
};

TEST_F(CudnnRnn, ReserveSpaceIsForTrainingOnly) {
  size_t workspace = 0;
  size_t reserve = 0;
  EXPECT_EQ(cudnnGetRNNTempSpaceSizes(handle_, rnn_, CUDNN_FWD_MODE_TRAINING, data_, &workspace, &reserve),
            CUDNN_STATUS_SUCCESS);
  EXPECT_GT(workspace, 0u);
  EXPECT_GT(reserve, 0u);
  EXPECT_EQ(cudnnGetRNNTempSpaceSizes(handle_, rnn_, CUDNN_FWD_MODE_INFERENCE, data_, &workspace, &reserve),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(reserve, 0u);
}

// PyTorch passes null for the half that it does not want.
TEST_F(CudnnRnn, WeightParametersAllowNullAddresses) {
  cudnnTensorDescriptor_t matrix = nullptr;
  cudnnTensorDescriptor_t bias = nullptr;
  ASSERT_EQ(cudnnCreateTensorDescriptor(&matrix), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnCreateTensorDescriptor(&bias), CUDNN_STATUS_SUCCESS);
  char* base = reinterpret_cast<char*>(0x1000);
  void* address = nullptr;
  EXPECT_EQ(cudnnGetRNNWeightParams(handle_, rnn_, 0, 0, base, 5, matrix, &address, bias, nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(address, base + 4 * (4 * 20 * 10 + 20 * 20));
  cudnnDataType_t type;
  int rank = 0;
  int sizes[3] = {};
  int strides[3] = {};
  EXPECT_EQ(cudnnGetTensorNdDescriptor(matrix, 3, &type, &rank, sizes, strides), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(sizes[1] * sizes[2], 20 * 20);
  EXPECT_EQ(cudnnGetRNNWeightParams(handle_, rnn_, 0, 0, base, 0, nullptr, nullptr, bias, &address),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(address, base + 4 * 4 * 20 * 30);
  EXPECT_EQ(cudnnGetRNNWeightParams(handle_, rnn_, 1, 0, base, 0, matrix, &address, bias, nullptr),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnDestroyTensorDescriptor(bias), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnDestroyTensorDescriptor(matrix), CUDNN_STATUS_SUCCESS);
}

}  // namespace
