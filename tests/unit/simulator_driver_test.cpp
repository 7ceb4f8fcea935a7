#include <cuda.h>
#include <gtest/gtest.h>

#include <string>

#include "preload/simulator/cuda/functions.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

// Base name and the symbol that the headers' macros make of it.
struct Row {
  const char* name;
  const char* symbol;
};
#define VRAMTRACE_TEXT(x) #x
#define VRAMTRACE_SYMBOL(x) VRAMTRACE_TEXT(x)
const Row kRows[] = {
#define X(name) {#name, VRAMTRACE_SYMBOL(name)},
    VRAMTRACE_SIM_DRIVER_FUNCTIONS(X)
#undef X
};

class Driver : public testing::Test {
 protected:
  Library library_{"libcuda.so.1"};
};

TEST_F(Driver, FindsEveryFunctionByItsBaseName) {
  auto find =
      reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(
          library_.Find("cuGetProcAddress_v2"));
  ASSERT_NE(find, nullptr);
  for (const Row& row : kRows) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    EXPECT_EQ(find(row.name, &function, 12000, 0, &result), CUDA_SUCCESS) << row.name;
    EXPECT_EQ(function, library_.Find(row.symbol)) << row.name;
    EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SUCCESS);
  }
  void* function = &function;
  EXPECT_EQ(find("cuMulticastCreate", &function, 12000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
}

// What c10/cuda/driver_api.h of PyTorch asserts to be there.
TEST_F(Driver, HasWhatPyTorchInsistsOn) {
  for (const char* wanted :
       {"cuDeviceGetAttribute", "cuMemAddressReserve", "cuMemRelease", "cuMemMap", "cuMemAddressFree",
        "cuMemSetAccess", "cuMemUnmap", "cuMemCreate", "cuMemGetAllocationGranularity",
        "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMemsetD32Async",
        "cuStreamWriteValue32", "cuGetErrorString", "cuMemRetainAllocationHandle",
        "cuMemGetAllocationPropertiesFromHandle"}) {
    bool found = false;
    for (const Row& row : kRows) found = found || std::string(row.name) == wanted;
    EXPECT_TRUE(found) << wanted;
  }
}

TEST_F(Driver, NeverAnswersAnExportTable) {
  auto table = library_.Get<decltype(&cuGetExportTable)>("cuGetExportTable");
  const void* answer = &answer;
  CUuuid id{};
  EXPECT_EQ(table(&answer, &id), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(answer, nullptr);
}

TEST_F(Driver, NamesEveryError) {
  auto name = library_.Get<decltype(&cuGetErrorName)>("cuGetErrorName");
  auto text = library_.Get<decltype(&cuGetErrorString)>("cuGetErrorString");
  const char* answer = nullptr;
  EXPECT_EQ(name(CUDA_ERROR_OUT_OF_MEMORY, &answer), CUDA_SUCCESS);
  EXPECT_STREQ(answer, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(text(CUDA_ERROR_OUT_OF_MEMORY, &answer), CUDA_SUCCESS);
  EXPECT_STREQ(answer, "out of memory");
  EXPECT_EQ(text(CUDA_ERROR_MPS_RPC_FAILURE, &answer), CUDA_SUCCESS);
  EXPECT_STREQ(answer, "mps rpc failure");
  EXPECT_EQ(name(static_cast<CUresult>(777), &answer), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, RefusesWhatItDoesNotDo) {
  auto create = reinterpret_cast<CUresult (*)(void*)>(library_.Find("cuArrayCreate_v2"));
  ASSERT_NE(create, nullptr);
  EXPECT_EQ(create(nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Driver, KnowsThePrimaryContext) {
  EXPECT_FRESH({
    Library library("libcuda.so.1");
    auto current = library.Get<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
    auto state = library.Get<decltype(&cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState");
    CUcontext context = nullptr;
    int active = 1;
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(state(0, nullptr, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 0);
    CUcontext primary = nullptr;
    EXPECT_EQ(library.Get<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&primary, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, primary);
    EXPECT_EQ(state(0, nullptr, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 1);
  });
}

}  // namespace
}  // namespace vramtrace::simulator
