#include <gtest/gtest.h>
#include <nvml.h>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

class Nvml : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        library_.Get<decltype(&nvmlDeviceGetHandleByIndex_v2)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_),
        NVML_SUCCESS);
  }
  Library library_{"libnvidia-ml.so.1"};
  nvmlDevice_t device_ = nullptr;
};

TEST_F(Nvml, AddsUpInBothVersions) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  nvmlMemory_t first;
  nvmlMemory_v2_t second;
  second.version = nvmlMemory_v2;
  ASSERT_EQ(library_.Get<decltype(&nvmlDeviceGetMemoryInfo)>("nvmlDeviceGetMemoryInfo")(device_, &first),
            NVML_SUCCESS);
  ASSERT_EQ(
      library_.Get<decltype(&nvmlDeviceGetMemoryInfo_v2)>("nvmlDeviceGetMemoryInfo_v2")(device_, &second),
      NVML_SUCCESS);
  EXPECT_EQ(first.total, 24564 * kMebibyte);
  EXPECT_EQ(first.used + first.free, first.total);
  EXPECT_EQ(second.used + second.free + second.reserved, second.total);
  EXPECT_EQ(second.used, PeekMemory(0).used_bytes);
  EXPECT_EQ(second.reserved, (24564 - 24207) * kMebibyte);
}

TEST_F(Nvml, ListsThisProcess) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  auto list = library_.Get<decltype(&nvmlDeviceGetComputeRunningProcesses_v3)>(
      "nvmlDeviceGetComputeRunningProcesses_v3");
  unsigned count = 0;
  EXPECT_EQ(list(device_, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 1u);
  nvmlProcessInfo_t info;
  ASSERT_EQ(list(device_, &count, &info), NVML_SUCCESS);
  EXPECT_EQ(info.pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(info.usedGpuMemory, PeekMemory(0).used_bytes);
}

TEST_F(Nvml, FindsTheDeviceByBusAndUuid) {
  char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
  ASSERT_EQ(library_.Get<decltype(&nvmlDeviceGetUUID)>("nvmlDeviceGetUUID")(device_, uuid, sizeof uuid),
            NVML_SUCCESS);
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(library_.Get<decltype(&nvmlDeviceGetHandleByUUID)>("nvmlDeviceGetHandleByUUID")(uuid, &found),
            NVML_SUCCESS);
  EXPECT_EQ(found, device_);
  auto by_bus = library_.Get<decltype(&nvmlDeviceGetHandleByPciBusId_v2)>("nvmlDeviceGetHandleByPciBusId_v2");
  for (const char* bus : {"0000:01:00.0", "00000000:01:00.0"}) {
    EXPECT_EQ(by_bus(bus, &found), NVML_SUCCESS);
    EXPECT_EQ(found, device_);
  }
  EXPECT_EQ(by_bus("0000:77:00.0", &found), NVML_ERROR_NOT_FOUND);
}

TEST_F(Nvml, RefusesBuffersThatAreTooSmall) {
  char name[4];
  EXPECT_EQ(library_.Get<decltype(&nvmlDeviceGetName)>("nvmlDeviceGetName")(device_, name, sizeof name),
            NVML_ERROR_INSUFFICIENT_SIZE);
}

}  // namespace
}  // namespace vramtrace::simulator
