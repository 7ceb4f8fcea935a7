#include <gtest/gtest.h>

#include <vector>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

uint64_t Used() { return PeekMemory(0).used_bytes; }

void* Take(uint64_t bytes) {
  void* address = nullptr;
  EXPECT_EQ(Allocate(0, bytes, &address), Status::kOk) << bytes;
  return address;
}

// What 256 allocations of one size took from cudaMemGetInfo's free, divided by 256: a published measurement
// (facts: how the driver charges cudaMalloc).
struct Charged {
  uint64_t asked;
  uint64_t charged;
};

class DriverRule : public testing::TestWithParam<Charged> {};

TEST_P(DriverRule, ChargesWhatWasMeasured) {
  EXPECT_FRESH({
    ASSERT_EQ(EnsureContext(0), Status::kOk);
    uint64_t before = Used();
    for (int i = 0; i < 256; ++i) Take(GetParam().asked);
    EXPECT_EQ((Used() - before) / 256, GetParam().charged);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Measured, DriverRule,
    testing::Values(Charged{400, 8 * kKibibyte}, Charged{3 * kKibibyte, 8 * kKibibyte},
                    Charged{4 * kKibibyte, 8 * kKibibyte}, Charged{10 * kKibibyte, 16 * kKibibyte},
                    Charged{16 * kKibibyte, 16 * kKibibyte}, Charged{64 * kKibibyte, 64 * kKibibyte},
                    Charged{96 * kKibibyte, 104 * kKibibyte}, Charged{384 * kKibibyte, 416 * kKibibyte},
                    Charged{768 * kKibibyte, kMebibyte}, Charged{kMebibyte, kMebibyte},
                    Charged{1536 * kKibibyte, 2 * kMebibyte}, Charged{3 * kMebibyte, 4 * kMebibyte}),
    [](const auto& row) { return std::to_string(row.param.asked); });

TEST(Memory, ChargesTheContextAtFirstUse) {
  EXPECT_FRESH({
    EXPECT_FALSE(HasContext(0));
    EXPECT_EQ(Used(), 0u);
    MemoryInfo info;
    ASSERT_EQ(QueryMemory(0, &info), Status::kOk);
    EXPECT_TRUE(HasContext(0));
    EXPECT_EQ(info.used_bytes, DeviceAt(0)->context_bytes);
    EXPECT_EQ(info.total_bytes, 24207 * kMebibyte);
  });
}

TEST(Memory, RefusesAtTheExactByte) {
  EXPECT_FRESH({
    MemoryInfo info;
    ASSERT_EQ(QueryMemory(0, &info), Status::kOk);
    // The total is no multiple of a page: whole pages are what can be had.
    uint64_t most = (info.total_bytes - info.used_bytes) / kPageBytes * kPageBytes;
    void* address = nullptr;
    EXPECT_EQ(Allocate(0, most + 1, &address), Status::kOutOfMemory);
    EXPECT_EQ(address, nullptr);
    EXPECT_EQ(Used(), info.used_bytes) << "a refusal charges nothing";
    EXPECT_EQ(Allocate(0, most, &address), Status::kOk);
    EXPECT_EQ(Allocate(0, 1, &address), Status::kOutOfMemory);
    EXPECT_EQ(Allocate(0, kPageBytes, &address), Status::kOutOfMemory);
  });
}

TEST(Memory, RefusesSizesThatOverflow) {
  void* address = nullptr;
  EXPECT_EQ(Allocate(0, ~uint64_t{0}, &address), Status::kOutOfMemory);
  EXPECT_EQ(Allocate(0, ~uint64_t{0} - kPageBytes, &address), Status::kOutOfMemory);
}

TEST(Memory, GivesBackWhatItCharged) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  uint64_t before = Used();
  std::vector<void*> all;
  for (uint64_t bytes : {1u, 511u, 512u, 4096u, 1u << 20, (1u << 20) + 1, 20u << 20})
    all.push_back(Take(bytes));
  EXPECT_GT(Used(), before);
  for (void* address : all) EXPECT_EQ(Free(address), Status::kOk);
  EXPECT_EQ(Used(), before);
}

TEST(Memory, ReusesTheRoomOfASharedPage) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  void* first = Take(kMebibyte);
  uint64_t with_one = Used();
  void* second = Take(kMebibyte);
  EXPECT_EQ(Used(), with_one) << "two requests of 1 MiB share a page";
  EXPECT_EQ(Free(first), Status::kOk);
  EXPECT_EQ(Used(), with_one);
  void* third = Take(512 * kKibibyte);
  EXPECT_EQ(third, first);
  EXPECT_EQ(Free(second), Status::kOk);
  EXPECT_EQ(Free(third), Status::kOk);
  EXPECT_EQ(Used(), with_one - kPageBytes);
}

TEST(Memory, AlignsAddresses) {
  void* small = Take(3);
  void* next = Take(3);
  void* large = Take(3 * kMebibyte);
  EXPECT_EQ(reinterpret_cast<uint64_t>(small) % kAddressAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uint64_t>(next) % kAddressAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uint64_t>(large) % kPageBytes, 0u);
  for (void* address : {small, next, large}) EXPECT_EQ(Free(address), Status::kOk);
}

TEST(Memory, NeverHandsOutOverlappingRanges) {
  std::vector<std::pair<uint64_t, uint64_t>> live;
  for (uint64_t i = 0; i < 200; ++i) {
    uint64_t bytes = (i * 7919 + 1) % (3 * kMebibyte) + 1;
    live.emplace_back(reinterpret_cast<uint64_t>(Take(bytes)), bytes);
    if (i % 3 == 0) {
      EXPECT_EQ(Free(reinterpret_cast<void*>(live[i / 3].first)), Status::kOk);
      live[i / 3].second = 0;
    }
  }
  for (size_t i = 0; i < live.size(); ++i) {
    for (size_t j = i + 1; j < live.size(); ++j) {
      if (live[i].second == 0 || live[j].second == 0) continue;
      bool apart =
          live[i].first + live[i].second <= live[j].first || live[j].first + live[j].second <= live[i].first;
      EXPECT_TRUE(apart);
    }
  }
  for (auto [address, bytes] : live) {
    if (bytes == 0) continue;
    EXPECT_EQ(Free(reinterpret_cast<void*>(address)), Status::kOk);
  }
}

TEST(Memory, FindsInteriorAddresses) {
  auto* address = static_cast<char*>(Take(5000));
  Range range;
  ASSERT_TRUE(FindRange(address + 4999, &range));
  EXPECT_EQ(range.base, reinterpret_cast<uint64_t>(address));
  EXPECT_EQ(range.bytes, 5000u);
  EXPECT_TRUE(IsDeviceAddress(address));
  EXPECT_FALSE(IsDeviceAddress(&range));
  EXPECT_EQ(Free(address), Status::kOk);
  EXPECT_FALSE(FindRange(address, &range));
}

TEST(Memory, RefusesWrongFrees) {
  auto* address = static_cast<char*>(Take(4096));
  EXPECT_EQ(Free(nullptr), Status::kOk);
  EXPECT_EQ(Free(address + 512), Status::kInvalidValue);
  EXPECT_EQ(Free(address), Status::kOk);
  EXPECT_EQ(Free(address), Status::kInvalidValue);
}

TEST(Memory, KeepsThePeak) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  uint64_t before = Used();
  void* address = Take(PeekMemory(0).peak_bytes - before + 10 * kMebibyte);
  uint64_t highest = Used();
  EXPECT_EQ(Free(address), Status::kOk);
  EXPECT_EQ(PeekMemory(0).peak_bytes, highest);
}

TEST(Memory, ChargesOutsideTheProgramsReach) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  uint64_t before = Used();
  EXPECT_EQ(ChargeOutside(0, 5000, "libtest.so"), Status::kOk);
  EXPECT_EQ(Used(), before + 5000);
  EXPECT_EQ(PeekMemory(0).outside_bytes, 5000u);
  UnchargeOutside(0, 5000, "libtest.so");
  EXPECT_EQ(Used(), before);
  EXPECT_EQ(ChargeOutside(0, ~uint64_t{0} / 2, "libtest.so"), Status::kOutOfMemory);
}

TEST(Memory, DoesNotChargeModuleMemory) {
  ASSERT_EQ(EnsureContext(0), Status::kOk);
  uint64_t before = Used();
  void* address = nullptr;
  ASSERT_EQ(AllocateModuleMemory(0, 10, &address), Status::kOk);
  EXPECT_EQ(Used(), before);
  EXPECT_EQ(Free(address), Status::kInvalidValue);
  EXPECT_EQ(FreeModuleMemory(address), Status::kOk);
}

TEST(Memory, OfUnknownDevicesIsRefused) {
  void* address = nullptr;
  EXPECT_EQ(Allocate(7, 10, &address), Status::kInvalidDevice);
  EXPECT_EQ(Allocate(-1, 10, &address), Status::kInvalidDevice);
}

}  // namespace
}  // namespace vramtrace::simulator
