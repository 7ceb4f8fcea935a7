#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "preload/simulator/core/device.h"
#include "tests/unit/simulator_fixture.h"

extern "C" {
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
}

namespace vramtrace::simulator {
namespace {

class Runtime : public testing::Test {
 protected:
  Library library_{"sim-cudart-13.so"};
};
#define CALL(name) library_.Get<decltype(&name)>(#name)

TEST_F(Runtime, RemembersTheLastError) {
  void* address = nullptr;
  EXPECT_EQ(library_.Get<cudaError_t (*)(void**, size_t)>("cudaMalloc")(&address, 1ull << 50),
            cudaErrorMemoryAllocation);
  EXPECT_EQ(CALL(cudaPeekAtLastError)(), cudaErrorMemoryAllocation);
  EXPECT_EQ(CALL(cudaGetLastError)(), cudaErrorMemoryAllocation);
  EXPECT_EQ(CALL(cudaGetLastError)(), cudaSuccess);
}

TEST_F(Runtime, NamesErrors) {
  EXPECT_STREQ(CALL(cudaGetErrorName)(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(CALL(cudaGetErrorString)(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(CALL(cudaGetErrorString)(cudaErrorIllegalAddress), "an illegal memory access was encountered");
  EXPECT_STREQ(CALL(cudaGetErrorString)(cudaErrorTimeout), "timeout");
  EXPECT_STREQ(CALL(cudaGetErrorName)(static_cast<cudaError_t>(777)), "unrecognized error code");
}

TEST_F(Runtime, DescribesPointers) {
  void* device = nullptr;
  auto allocate = library_.Get<cudaError_t (*)(void**, size_t)>("cudaMalloc");
  ASSERT_EQ(allocate(&device, 1000), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(CALL(cudaPointerGetAttributes)(&attributes, static_cast<char*>(device) + 10), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(CALL(cudaPointerGetAttributes)(&attributes, &attributes), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributes.device, cudaInvalidDeviceId);
  EXPECT_EQ(CALL(cudaFree)(device), cudaSuccess);
  EXPECT_EQ(CALL(cudaFree)(device), cudaErrorInvalidValue);
}

TEST_F(Runtime, GivesSymbolsAnAddress) {
  static char host;
  static char other;
  char name[] = "counter";
  CALL(__cudaRegisterVar)(nullptr, &host, nullptr, name, 0, 8, 0, 1);
  void* address = nullptr;
  auto find = library_.Get<cudaError_t (*)(void**, const void*)>("cudaGetSymbolAddress");
  ASSERT_EQ(find(&address, &host), cudaSuccess);
  long value = 42;
  auto to = library_.Get<cudaError_t (*)(const void*, const void*, size_t, size_t, cudaMemcpyKind)>(
      "cudaMemcpyToSymbol");
  ASSERT_EQ(to(&host, &value, 8, 0, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(to(&host, &value, 8, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(to(&other, &value, 8, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  long back = 0;
  ASSERT_EQ(CALL(cudaMemcpy)(&back, address, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, 42);
}

TEST_F(Runtime, ReportsTheVersionOfItsHeaders) {
  int version = 0;
  EXPECT_EQ(CALL(cudaRuntimeGetVersion)(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
  EXPECT_EQ(CALL(cudaDriverGetVersion)(&version), cudaSuccess);
  EXPECT_GE(version, CUDART_VERSION);
}

TEST_F(Runtime, RefusesWhatItDoesNotDo) {
  auto create = reinterpret_cast<cudaError_t (*)(void*)>(library_.Find("cudaMallocArray"));
  ASSERT_NE(create, nullptr);
  EXPECT_EQ(create(nullptr), cudaErrorNotSupported);
}

TEST_F(Runtime, NeverAnswersAnExportTable) {
  auto table =
      reinterpret_cast<cudaError_t (*)(const void**, const cudaUUID_t*)>(library_.Find("cudaGetExportTable"));
  const void* answer = &answer;
  EXPECT_NE(table(&answer, nullptr), cudaSuccess);
  EXPECT_EQ(answer, nullptr);
}

void Destroy(void* counter) { ++*static_cast<int*>(counter); }

TEST_F(Runtime, KeepsUserObjectsWithTheirGraph) {
  int destroyed = 0;
  cudaGraph_t graph = nullptr;
  cudaUserObject_t object = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(CALL(cudaGraphCreate)(&graph, 0), cudaSuccess);
  ASSERT_EQ(CALL(cudaUserObjectCreate)(&object, &destroyed, Destroy, 1, cudaUserObjectNoDestructorSync),
            cudaSuccess);
  ASSERT_EQ(CALL(cudaGraphRetainUserObject)(graph, object, 1, cudaGraphUserObjectMove), cudaSuccess);
  ASSERT_EQ(CALL(cudaGraphInstantiateWithFlags)(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(CALL(cudaGraphDestroy)(graph), cudaSuccess);
  EXPECT_EQ(destroyed, 0) << "the executable still holds it";
  EXPECT_EQ(CALL(cudaGraphExecDestroy)(executable), cudaSuccess);
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace vramtrace::simulator
