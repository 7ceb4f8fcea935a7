#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/values.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

class Values : public testing::Test {
 protected:
  void SetUp() override {
    ForgetCounts();
    ASSERT_EQ(Allocate(0, kBytes, reinterpret_cast<void**>(&device_)), Status::kOk);
  }
  void TearDown() override { EXPECT_EQ(Free(device_), Status::kOk); }

  [[nodiscard]] Knowledge Of(size_t offset, size_t bytes) const {
    return KnowledgeOf(reinterpret_cast<uint64_t>(device_ + offset), bytes);
  }
  template <typename T>
  T Read(size_t offset = 0) {
    T value{};
    EXPECT_EQ(Copy(&value, device_ + offset, sizeof value), Status::kOk);
    return value;
  }

  static constexpr uint64_t kBytes = 4 * kMebibyte;
  char* device_ = nullptr;
};

TEST_F(Values, AreInventedUntilStored) {
  EXPECT_EQ(Of(0, 8), Knowledge::kInvented);
  EXPECT_EQ(KnowledgeOf(1, 8), Knowledge::kNotLive);
  const std::vector<char> bytes(2000, 7);
  ASSERT_EQ(Copy(device_, bytes.data(), bytes.size()), Status::kOk);
  EXPECT_EQ(Of(0, 2000), Knowledge::kKnown);
  EXPECT_EQ(Of(0, 4096), Knowledge::kInvented) << "its end was never stored";
}

TEST_F(Values, AreWrittenByTheHostInPlace) {
  const auto address = reinterpret_cast<uint64_t>(device_);
  ASSERT_TRUE(OpenForHost(address, 8));
  *reinterpret_cast<uint64_t*>(device_) = 41;
  MarkWritten(address, 8, true);
  EXPECT_EQ(Of(0, 8), Knowledge::kKnown);
  EXPECT_EQ(Read<uint64_t>(), 41U);
  MarkWritten(address, 8, false);
  EXPECT_EQ(Of(0, 8), Knowledge::kInvented);
  EXPECT_EQ(Read<uint64_t>(), 41U) << "an invention is read as it stands";
  EXPECT_FALSE(OpenForHost(1, 8));
}

TEST_F(Values, CarryInventionThroughCopies) {
  const std::vector<char> bytes(1024, 3);
  ASSERT_EQ(Copy(device_, bytes.data(), bytes.size()), Status::kOk);
  MarkWritten(reinterpret_cast<uint64_t>(device_) + 512, 512, false);
  ASSERT_EQ(Copy(device_ + 8192, device_, 1024), Status::kOk);
  EXPECT_EQ(Of(8192, 512), Knowledge::kKnown);
  EXPECT_EQ(Of(8192 + 512, 512), Knowledge::kInvented);
  ASSERT_EQ(Copy(device_ + 8192 + 512, bytes.data(), 512), Status::kOk);
  EXPECT_EQ(Of(8192, 1024), Knowledge::kKnown) << "a true copy makes it known again";
}

TEST_F(Values, ExpectedCountsAnswerReadsOfWhatNobodyKnows) {
  ExpectCount(12, true);
  ExpectCount(13, false);
  EXPECT_EQ(Read<int32_t>(), 12);
  EXPECT_EQ(Read<int64_t>(), 13);
  EXPECT_EQ(Read<int64_t>(), 0);
  const int64_t known = 5;
  ASSERT_EQ(Copy(device_, &known, sizeof known), Status::kOk);
  ExpectCount(99, true);
  EXPECT_EQ(Read<int64_t>(), 5) << "what is known is not replaced";
  ForgetCounts();
  EXPECT_EQ(Read<int64_t>(4096), 0);
}

TEST_F(Values, AReductionOfFlagsIsReadOnce) {
  ExpectFlag(true);
  EXPECT_EQ(Read<int32_t>(4096), 0) << "not a flag";
  EXPECT_EQ(Read<uint8_t>(4096), 1);
  EXPECT_EQ(Read<uint8_t>(4096), 0);
  ExpectFlag(true);
  ExpectFlag(false);
  EXPECT_EQ(Read<uint8_t>(4096), 0);
}

TEST_F(Values, UnknownCountsAreHalfUnlessChosen) { EXPECT_EQ(UnknownCount(1001), 500U); }

}  // namespace
}  // namespace vramtrace::simulator
