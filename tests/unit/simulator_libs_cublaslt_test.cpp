#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "preload/simulator/core/device.h"

namespace {

TEST(CublasLt, DescriptorsBeginWithTheDocumentedDefaults) {
  cublasLtMatmulDesc_t descriptor = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&descriptor, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  size_t written = 0;
  int32_t value = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(descriptor, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &value,
                                           sizeof value, &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(value, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(written, 4u);
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, &value, sizeof value,
                                           nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(value, CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(descriptor, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &value,
                                           sizeof value, nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(value, -1);
  EXPECT_EQ(cublasLtMatmulDescDestroy(descriptor), CUBLAS_STATUS_SUCCESS);
}

TEST(CublasLt, SizesMustMatch) {
  cublasLtMatmulDesc_t descriptor = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&descriptor, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const int64_t wide = 1;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(descriptor, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide),
            CUBLAS_STATUS_INVALID_VALUE);
  size_t needed = 0;
  EXPECT_EQ(
      cublasLtMatmulDescGetAttribute(descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr, 0, &needed),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(needed, sizeof(void*));
  int32_t narrow = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &narrow,
                                           sizeof narrow, nullptr),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescDestroy(descriptor), CUBLAS_STATUS_SUCCESS);
}

// cuBLASLt lets a program keep descriptors in its own memory, copy them and never destroy them.
TEST(CublasLt, DescriptorsAreCopiedByValue) {
  cublasLtMatrixLayoutOpaque_t first;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&first, CUDA_R_16BF, 128, 64, 128), CUBLAS_STATUS_SUCCESS);
  cublasLtMatrixLayoutOpaque_t second = first;
  const int32_t batch = 12;
  ASSERT_EQ(
      cublasLtMatrixLayoutSetAttribute(&first, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
      CUBLAS_STATUS_SUCCESS);
  int32_t read = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(&second, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &read, sizeof read,
                                             nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(read, 1);
  uint64_t rows = 0;
  EXPECT_EQ(
      cublasLtMatrixLayoutGetAttribute(&second, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, nullptr),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(rows, 128u);
  EXPECT_EQ(cublasLtMatrixLayoutInit_internal(&first, 16, CUDA_R_16BF, 1, 1, 1), CUBLAS_STATUS_ALLOC_FAILED);
}

TEST(CublasLt, WhatIsNoDescriptorIsRefused) {
  cublasLtMatrixLayoutOpaque_t layout = {};
  uint64_t rows = 0;
  EXPECT_EQ(
      cublasLtMatrixLayoutGetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, nullptr),
      CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatmulPreferenceOpaque_t preference;
  ASSERT_EQ(cublasLtMatmulPreferenceInit(&preference), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(reinterpret_cast<cublasLtMatrixLayout_t>(&preference),
                                             CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, nullptr),
            CUBLAS_STATUS_INVALID_VALUE);
}

class Heuristics : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cublasLtMatmulDescInit(&descriptor_, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceInit(&preference_), CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t Ask(cudaDataType_t type, int* returned) {
    cublasLtMatrixLayoutOpaque_t layout;
    EXPECT_EQ(cublasLtMatrixLayoutInit(&layout, type, 64, 64, 64), CUBLAS_STATUS_SUCCESS);
    std::memset(&result_, 0xff, sizeof result_);
    return cublasLtMatmulAlgoGetHeuristic(nullptr, &descriptor_, &layout, &layout, &layout, &layout,
                                          &preference_, 1, &result_, returned);
  }
  cublasLtMatmulDescOpaque_t descriptor_;
  cublasLtMatmulPreferenceOpaque_t preference_;
  cublasLtMatmulHeuristicResult_t result_;
};

TEST_F(Heuristics, GiveOneResult) {
  int returned = 0;
  EXPECT_EQ(Ask(CUDA_R_16BF, &returned), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(result_.state, CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result_.workspaceSize, 0u);
  cublasLtMatmulHeuristicResult_t checked;
  cublasLtMatrixLayoutOpaque_t layout;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_16BF, 64, 64, 64), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulAlgoCheck(nullptr, &descriptor_, &layout, &layout, &layout, &layout, &result_.algo,
                                    &checked),
            CUBLAS_STATUS_SUCCESS);
}

// The default simulated card is of compute capability 8.9: it has FP8 and no FP4.
TEST_F(Heuristics, RefuseTypesTheCardLacks) {
  int major = 0;
  int minor = 0;
  ASSERT_EQ(vramtrace::simulator::DeviceAttribute(0, 75, &major), vramtrace::simulator::Status::kOk);
  ASSERT_EQ(vramtrace::simulator::DeviceAttribute(0, 76, &minor), vramtrace::simulator::Status::kOk);
  ASSERT_EQ(10 * major + minor, 89);
  int returned = 9;
  EXPECT_EQ(Ask(CUDA_R_8F_E4M3, &returned), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(Ask(CUDA_R_4F_E2M1, &returned), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(returned, 0);
}

}  // namespace
