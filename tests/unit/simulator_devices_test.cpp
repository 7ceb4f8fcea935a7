#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/catalogue/catalogue.h"
#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

class EveryCard : public testing::TestWithParam<int> {};

// The runtime's properties and attributes of each card of the catalogue.
TEST_P(EveryCard, HasProperties) {
  const catalogue::Gpu& gpu = catalogue::Gpus()[static_cast<size_t>(GetParam())];
  Environment card("VRAMTRACE_SIM_GPU", std::string(gpu.id));
  std::string given = catalogue::TotalsOf(gpu) ? "" : "192000MiB";
  Environment total("VRAMTRACE_SIM_TOTAL", given);
  EXPECT_FRESH({
    Library runtime("sim-cudart-13.so");
    cudaDeviceProp properties;
    ASSERT_EQ(runtime.Get<decltype(&cudaGetDeviceProperties)>("cudaGetDeviceProperties")(&properties, 0),
              cudaSuccess);
    EXPECT_EQ(properties.name, gpu.device_name);
    EXPECT_EQ(properties.major, gpu.compute_major);
    EXPECT_EQ(properties.minor, gpu.compute_minor);
    EXPECT_EQ(properties.multiProcessorCount, gpu.multiprocessors);
    EXPECT_EQ(properties.warpSize, 32);
    EXPECT_GE(properties.sharedMemPerBlockOptin, properties.sharedMemPerBlock);
    EXPECT_GE(properties.sharedMemPerMultiprocessor, properties.sharedMemPerBlockOptin);
    EXPECT_EQ(properties.l2CacheSize, static_cast<int>(gpu.l2_bytes));
    EXPECT_EQ(properties.memoryBusWidth, gpu.bus_width_bits);
    EXPECT_TRUE(!given.empty() || properties.totalGlobalMem == catalogue::TotalsOf(gpu)->cuda_bytes);
    int value = 0;
    auto attribute = runtime.Get<decltype(&cudaDeviceGetAttribute)>("cudaDeviceGetAttribute");
    for (int number = 1; number < cudaDevAttrMax; ++number) {
      EXPECT_EQ(attribute(&value, static_cast<cudaDeviceAttr>(number), 0), cudaSuccess) << number;
    }
    EXPECT_EQ(attribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    EXPECT_EQ(value, gpu.multiprocessors);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ASSERT_EQ(runtime.Get<decltype(&cudaMemGetInfo)>("cudaMemGetInfo")(&free_bytes, &total_bytes),
              cudaSuccess);
    EXPECT_EQ(total_bytes, properties.totalGlobalMem);
    EXPECT_EQ(total_bytes - free_bytes, DeviceAt(0)->context_bytes);
  });
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryCard, testing::Range(0, 52), [](const auto& row) {
  std::string name(catalogue::Gpus()[static_cast<size_t>(row.param)].id);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

TEST(Devices, OfAnUnknownCardAreNoneWithAMessage) {
  Environment gpu("VRAMTRACE_SIM_GPU", "rtx4091");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(DeviceCount()), testing::ExitedWithCode(0), "unknown GPU 'rtx4091'.*rtx4090");
}

TEST(Devices, WithoutAKnownTotalAreNoneWithAMessage) {
  Environment gpu("VRAMTRACE_SIM_GPU", "b100");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(DeviceCount()), testing::ExitedWithCode(0), "VRAMTRACE_SIM_TOTAL");
}

TEST(Devices, AreAsManyAsAsked) {
  Environment count("VRAMTRACE_SIM_COUNT", "3");
  EXPECT_FRESH({
    EXPECT_EQ(DeviceCount(), 3);
    void* address = nullptr;
    ASSERT_EQ(Allocate(2, 512, &address), Status::kOk);
    EXPECT_TRUE(HasContext(2));
    EXPECT_FALSE(HasContext(0));
    EXPECT_EQ(PeekMemory(0).used_bytes, 0u);
    EXPECT_STRNE(DeviceAt(0)->pci_bus_id, DeviceAt(1)->pci_bus_id);
    EXPECT_NE(UuidText(*DeviceAt(0)), UuidText(*DeviceAt(1)));
  });
}

TEST(Devices, AreThoseThatAreVisible) {
  Environment count("VRAMTRACE_SIM_COUNT", "4");
  {
    Environment visible("CUDA_VISIBLE_DEVICES", "3,1,9,0");
    EXPECT_FRESH({
      EXPECT_EQ(DeviceCount(), 2) << "entries after a bad one are ignored";
      EXPECT_STREQ(DeviceAt(0)->pci_bus_id, PhysicalDeviceAt(3)->pci_bus_id);
      EXPECT_EQ(PhysicalDeviceCount(), 4);
    });
  }
  Environment visible("CUDA_VISIBLE_DEVICES", "");
  EXPECT_FRESH({ EXPECT_EQ(DeviceCount(), 0); });
}

TEST(Devices, TakeTotalAndContextFromTheEnvironment) {
  Environment total("VRAMTRACE_SIM_TOTAL", "3000000001");
  Environment context("VRAMTRACE_SIM_CONTEXT", "100MiB");
  EXPECT_FRESH({
    EXPECT_EQ(DeviceAt(0)->total_bytes, 3000000001u);
    MemoryInfo info;
    ASSERT_EQ(QueryMemory(0, &info), Status::kOk);
    EXPECT_EQ(info.context_bytes, 100 * kMebibyte);
    EXPECT_EQ(info.used_bytes, 100 * kMebibyte);
  });
}

TEST(Devices, TooSmallForAContextRefuseIt) {
  Environment total("VRAMTRACE_SIM_TOTAL", "100MiB");
  EXPECT_FRESH({ EXPECT_EQ(EnsureContext(0), Status::kOutOfMemory); });
}

TEST(Devices, AreUnusableInAForkedChildOnceUsed) {
  EXPECT_FRESH({
    ASSERT_EQ(EnsureContext(0), Status::kOk);
    pid_t child = fork();
    if (child == 0) {
      void* address = nullptr;
      _exit(Allocate(0, 512, &address) == Status::kForked && EnsureContext(0) == Status::kForked ? 7 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    void* address = nullptr;
    EXPECT_EQ(Allocate(0, 512, &address), Status::kOk) << "the parent goes on";
  });
}

TEST(Devices, AreUsableInAChildForkedBefore) {
  EXPECT_FRESH({
    pid_t child = fork();
    if (child == 0) _exit(EnsureContext(0) == Status::kOk ? 7 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
  });
}

}  // namespace
}  // namespace vramtrace::simulator
