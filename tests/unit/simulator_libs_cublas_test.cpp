// Through the shared library, so that the generated functions are the ones that run.

#include <cublas_v2.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/memory.h"

namespace {

void* Find(const char* name) {
  static void* const library = dlopen(VRAMTRACE_SIM_CUBLAS, RTLD_NOW | RTLD_LOCAL);
  void* function = library != nullptr ? dlsym(library, name) : nullptr;
  if (function == nullptr) {
    ADD_FAILURE() << name << ": " << dlerror();
    std::abort();
  }
  return function;
}

// cublas_v2.h renames functions by macros, so the name is expanded before it is made a string.
#define NAME_OF(name) #name
#define EXPANDED_NAME_OF(name) NAME_OF(name)
#define CALL(name) reinterpret_cast<decltype(&(name))>(Find(EXPANDED_NAME_OF(name)))

class Cublas : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(CALL(cublasCreate)(&handle_), CUBLAS_STATUS_SUCCESS); }
  void TearDown() override { EXPECT_EQ(CALL(cublasDestroy)(handle_), CUBLAS_STATUS_SUCCESS); }
  cublasHandle_t handle_ = nullptr;
};

TEST_F(Cublas, SettingsComeBack) {
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  EXPECT_EQ(CALL(cublasSetMathMode)(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(CALL(cublasGetMathMode)(handle_, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_TF32_TENSOR_OP_MATH);
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_DEVICE;
  EXPECT_EQ(CALL(cublasGetPointerMode)(handle_, &mode), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(mode, CUBLAS_POINTER_MODE_HOST);
  int version = 0;
  EXPECT_EQ(CALL(cublasGetVersion)(handle_, &version), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(version, CUBLAS_VERSION);
}

TEST_F(Cublas, WorkspaceMustBeAligned) {
  EXPECT_EQ(CALL(cublasSetWorkspace)(handle_, reinterpret_cast<void*>(0x1000), 1 << 20),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(CALL(cublasSetWorkspace)(handle_, reinterpret_cast<void*>(0x1010), 1 << 20),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(Cublas, MultiplicationNeedsAHandle) {
  const float one = 1;
  float* none = nullptr;
  EXPECT_EQ(
      CALL(cublasSgemm)(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, none, 1, none, 1, &one, none, 1),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(
      CALL(cublasSgemm)(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, none, 1, none, 1, &one, none, 1),
      CUBLAS_STATUS_NOT_INITIALIZED);
}

// The caller reads the result on the host: it must be written.
TEST_F(Cublas, HostResultsAreWritten) {
  float result = 7;
  EXPECT_EQ(CALL(cublasSdot)(handle_, 3, nullptr, 1, nullptr, 1, &result), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result, 0.0F);
  double norm = 7;
  EXPECT_EQ(CALL(cublasDnrm2)(handle_, 3, nullptr, 1, &norm), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(norm, 0.0);
  int info = 7;
  float* const* batch = nullptr;
  EXPECT_EQ(CALL(cublasSgeqrfBatched)(handle_, 2, 2, batch, 2, batch, &info, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(info, 0);
  EXPECT_EQ(CALL(cublasSetPointerMode)(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  result = 7;  // stands for device memory, which the host may not touch
  EXPECT_EQ(CALL(cublasSdot)(handle_, 3, nullptr, 1, nullptr, 1, &result), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result, 7.0F);
}

TEST_F(Cublas, MatricesAreReallyCopied) {
  using namespace vramtrace::simulator;
  void* device = nullptr;
  ASSERT_EQ(Allocate(0, 4096, &device), Status::kOk);
  const float source[6] = {1, 2, 3, 4, 5, 6};  // 2 rows, 3 columns
  ASSERT_EQ(CALL(cublasSetMatrix)(2, 3, sizeof(float), source, 2, device, 4), CUBLAS_STATUS_SUCCESS);
  float back[6] = {};
  ASSERT_EQ(CALL(cublasGetMatrix)(2, 3, sizeof(float), device, 4, back, 2), CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(std::equal(source, source + 6, back));
  float second_column = 0;
  EXPECT_EQ(Peek(&second_column, static_cast<float*>(device) + 4, sizeof second_column), Status::kOk);
  EXPECT_EQ(second_column, 3.0F);
  EXPECT_EQ(CALL(cublasSetVector)(2, sizeof(float), source, 1, device, 0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Free(device), Status::kOk);
}

}  // namespace
