#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/memory.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

class Contents : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(Allocate(0, kBytes, reinterpret_cast<void**>(&device_)), Status::kOk); }
  void TearDown() override { EXPECT_EQ(Free(device_), Status::kOk); }

  static std::vector<unsigned char> Pattern(size_t bytes) {
    std::vector<unsigned char> pattern(bytes);
    std::iota(pattern.begin(), pattern.end(), static_cast<unsigned char>(1));
    return pattern;
  }
  std::vector<unsigned char> Read(size_t offset, size_t bytes) {
    std::vector<unsigned char> read(bytes, 0xee);
    EXPECT_EQ(Copy(read.data(), device_ + offset, bytes), Status::kOk);
    return read;
  }
  static std::vector<unsigned char> Zeros(size_t bytes) { return std::vector<unsigned char>(bytes); }

  static constexpr uint64_t kBytes = 64 * kMebibyte;
  char* device_ = nullptr;
};

TEST_F(Contents, AreZeroBeforeAnythingIsStored) { EXPECT_EQ(Read(12345, 1000), Zeros(1000)); }

TEST_F(Contents, ReturnWhatWasCopiedIn) {
  auto pattern = Pattern(10000);
  ASSERT_EQ(Copy(device_ + 777, pattern.data(), pattern.size()), Status::kOk);
  EXPECT_EQ(Read(777, pattern.size()), pattern);
  EXPECT_EQ(Read(0, 777), Zeros(777));
  EXPECT_EQ(Read(10777, 5000), Zeros(5000));
}

TEST_F(Contents, CrossPieces) {
  auto pattern = Pattern(9000);
  size_t offset = 2 * kMebibyte - 4000;
  ASSERT_EQ(Copy(device_ + offset, pattern.data(), pattern.size()), Status::kOk);
  EXPECT_EQ(Read(offset, pattern.size()), pattern);
}

TEST_F(Contents, MoveWithinTheDevice) {
  auto pattern = Pattern(5000);
  ASSERT_EQ(Copy(device_, pattern.data(), pattern.size()), Status::kOk);
  ASSERT_EQ(Copy(device_ + kMebibyte, device_, 8000), Status::kOk);
  EXPECT_EQ(Read(kMebibyte, pattern.size()), pattern);
  EXPECT_EQ(Read(kMebibyte + 5000, 3000), Zeros(3000));
}

TEST_F(Contents, MoveOverOldBytes) {
  auto pattern = Pattern(5000);
  ASSERT_EQ(Copy(device_ + kMebibyte, pattern.data(), pattern.size()), Status::kOk);
  ASSERT_EQ(Copy(device_ + kMebibyte, device_, 5000), Status::kOk);
  EXPECT_EQ(Read(kMebibyte, 5000), Zeros(5000)) << "a copy of nothing stored clears its destination";
}

TEST_F(Contents, MoveBetweenOverlappingRanges) {
  auto pattern = Pattern(3000);
  ASSERT_EQ(Copy(device_, pattern.data(), pattern.size()), Status::kOk);
  ASSERT_EQ(Copy(device_ + 100, device_, 3000), Status::kOk);
  EXPECT_EQ(Read(100, 3000), pattern);
}

TEST_F(Contents, AboveTheLimitAreNotStored) {
  std::vector<unsigned char> large(17 * kMebibyte, 7);
  ASSERT_EQ(Copy(device_, large.data(), large.size()), Status::kOk);
  EXPECT_EQ(Read(0, 100), Zeros(100));
  ASSERT_EQ(Copy(device_, large.data(), 16 * kMebibyte), Status::kOk);
  EXPECT_EQ(Read(16 * kMebibyte - 1, 1).front(), 7);
}

TEST_F(Contents, AreFilled) {
  ASSERT_EQ(Fill(device_ + 4, 0xff11aabb, 4, 3), Status::kOk);
  EXPECT_EQ(Read(0, 20),
            (std::vector<unsigned char>{0,    0,    0,    0,    0xbb, 0xaa, 0x11, 0xff, 0xbb, 0xaa,
                                        0x11, 0xff, 0xbb, 0xaa, 0x11, 0xff, 0,    0,    0,    0}));
  ASSERT_EQ(Fill(device_ + 4, 0x1ff00, 1, 8), Status::kOk);
  EXPECT_EQ(Read(4, 8), Zeros(8)) << "only the low byte counts";
  ASSERT_EQ(Fill(device_, 0x0102, 2, 1), Status::kOk);
  EXPECT_EQ(Read(0, 2), (std::vector<unsigned char>{2, 1}));
  EXPECT_EQ(Fill(device_, 0, 3, 1), Status::kInvalidValue);
}

TEST_F(Contents, AreForgottenWhenCleared) {
  auto pattern = Pattern(2000);
  ASSERT_EQ(Copy(device_, pattern.data(), pattern.size()), Status::kOk);
  Clear(device_ + 500, 1000);
  auto read = Read(0, 2000);
  EXPECT_EQ(read[499], pattern[499]);
  EXPECT_EQ(read[500], 0);
  EXPECT_EQ(read[1499], 0);
  EXPECT_EQ(read[1500], pattern[1500]);
}

TEST_F(Contents, DoNotSurviveAFree) {
  auto pattern = Pattern(100);
  void* address = nullptr;
  ASSERT_EQ(Allocate(0, 4096, &address), Status::kOk);
  ASSERT_EQ(Copy(address, pattern.data(), pattern.size()), Status::kOk);
  ASSERT_EQ(Free(address), Status::kOk);
  void* again = nullptr;
  ASSERT_EQ(Allocate(0, 4096, &again), Status::kOk);
  EXPECT_EQ(again, address);
  std::vector<unsigned char> read(100, 1);
  EXPECT_EQ(Copy(read.data(), again, 100), Status::kOk);
  EXPECT_EQ(read, Zeros(100));
  EXPECT_EQ(Free(again), Status::kOk);
}

TEST_F(Contents, OutsideLiveMemoryAreRefused) {
  char host[100] = {};
  EXPECT_EQ(Copy(device_ + kBytes - 50, host, 100), Status::kInvalidValue);
  EXPECT_EQ(Copy(host, device_ + kBytes, 1), Status::kInvalidValue);
  EXPECT_EQ(Fill(device_ + kBytes - 1, 1, 1, 2), Status::kInvalidValue);
  EXPECT_EQ(Copy(device_ + kBytes - 50, host, 50), Status::kOk);
}

TEST_F(Contents, CopyRows) {
  auto pattern = Pattern(40);
  ASSERT_EQ(Copy2D(device_, 512, pattern.data(), 10, 8, 4), Status::kOk);
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(Read(row * 512, 8),
              (std::vector<unsigned char>(pattern.begin() + static_cast<long>(row) * 10,
                                          pattern.begin() + static_cast<long>(row) * 10 + 8)));
  }
  EXPECT_EQ(Copy2D(device_, 4, pattern.data(), 10, 8, 4), Status::kInvalidValue);
}

TEST_F(Contents, OfTheHostAreOrdinary) {
  char from[] = "abc";
  char to[4] = {};
  EXPECT_EQ(Copy(to, from, 4), Status::kOk);
  EXPECT_STREQ(to, "abc");
}

TEST_F(Contents, TakeNoMemoryUntilStored) {
  auto resident = [] {
    long pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(std::fscanf(file, "%*s %ld", &pages), 1);
    std::fclose(file);
    return static_cast<uint64_t>(pages) * 4096;
  };
  void* address = nullptr;
  uint64_t before = resident();
  ASSERT_EQ(Allocate(0, 8192 * kMebibyte, &address), Status::kOk);
  ASSERT_EQ(Fill(address, 0, 1, 8192 * kMebibyte), Status::kOk);
  EXPECT_LT(resident(), before + 16 * kMebibyte);
  EXPECT_EQ(Free(address), Status::kOk);
}

TEST_F(Contents, CannotBeReadByTheHostItself) {
  EXPECT_DEATH(static_cast<void>(*reinterpret_cast<volatile char*>(device_ + 20 * kMebibyte)), "");
}

TEST_F(Contents, PastTheStoreLimitKeepOnlySmallCopies) {
  Environment limit("VRAMTRACE_SIM_STORE_LIMIT", "1MiB");
  EXPECT_FRESH({
    ASSERT_EQ(Allocate(0, kBytes, reinterpret_cast<void**>(&device_)), Status::kOk);
    std::vector<unsigned char> large(kMebibyte, 5);
    ASSERT_EQ(Copy(device_, large.data(), large.size()), Status::kOk);
    ASSERT_EQ(Copy(device_ + kMebibyte, large.data(), large.size()), Status::kOk);
    ASSERT_EQ(Copy(device_ + 2 * kMebibyte, large.data(), 64 * kKibibyte), Status::kOk);
    EXPECT_EQ(Read(0, 1).front(), 5);
    EXPECT_EQ(Read(kMebibyte, 1).front(), 0);
    EXPECT_EQ(Read(2 * kMebibyte, 1).front(), 5);
  });
}

}  // namespace
}  // namespace vramtrace::simulator
