#include <gtest/gtest.h>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/host_memory.h"
#include "preload/simulator/core/kernels.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/virtual_memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

Status AllocateSome() {
  void* address = nullptr;
  return Allocate(0, 512, &address);
}

TEST(Faults, FailTheNthAllocationAlone) {
  Environment fail("VRAMTRACE_SIM_FAIL", "allocate:3");
  EXPECT_FRESH({
    EXPECT_EQ(AllocateSome(), Status::kOk);
    EXPECT_EQ(AllocateSome(), Status::kOk);
    EXPECT_EQ(AllocateSome(), Status::kOutOfMemory);
    EXPECT_EQ(AllocateSome(), Status::kOk);
  });
}

TEST(Faults, FailAllLaterOnesWithAPlus) {
  Environment fail("VRAMTRACE_SIM_FAIL", "allocate:2+");
  EXPECT_FRESH({
    EXPECT_EQ(AllocateSome(), Status::kOk);
    EXPECT_EQ(AllocateSome(), Status::kOutOfMemory);
    EXPECT_EQ(AllocateSome(), Status::kOutOfMemory);
  });
}

TEST(Faults, ReachEveryKind) {
  Environment fail("VRAMTRACE_SIM_FAIL", "host:1,copy:1,launch:1,physical:1,map:1");
  EXPECT_FRESH({
    void* address = nullptr;
    EXPECT_EQ(AllocateHost(HostKind::kPinned, 10, 0, &address), Status::kOutOfMemory);
    char a = 0;
    EXPECT_EQ(Copy(&a, &a, 1), Status::kInjected);
    EXPECT_EQ(Launch(nullptr, nullptr), Status::kInjected);
    uint64_t handle = 0;
    EXPECT_EQ(CreatePhysical(Location::kDevice, 0, kPhysicalGranularity, &handle), Status::kOutOfMemory);
    EXPECT_EQ(CreatePhysical(Location::kDevice, 0, kPhysicalGranularity, &handle), Status::kOk);
    uint64_t reserved = 0;
    ASSERT_EQ(ReserveAddresses(kPhysicalGranularity, 0, 0, &reserved), Status::kOk);
    EXPECT_EQ(Map(reserved, kPhysicalGranularity, 0, handle), Status::kInjected);
    EXPECT_EQ(Map(reserved, kPhysicalGranularity, 0, handle), Status::kOk);
  });
}

TEST(Faults, FailTheContext) {
  Environment fail("VRAMTRACE_SIM_FAIL", "context:1");
  EXPECT_FRESH({
    EXPECT_EQ(AllocateSome(), Status::kOutOfMemory);
    EXPECT_EQ(AllocateSome(), Status::kOk);
  });
}

TEST(Faults, SayWhatTheyDoNotUnderstand) {
  Environment fail("VRAMTRACE_SIM_FAIL", "alocate:3");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static_cast<void>(AllocateSome());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "'alocate:3' is not KIND:N");
}

}  // namespace
}  // namespace vramtrace::simulator
