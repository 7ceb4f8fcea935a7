#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "preload/trace/crc32c.h"

namespace vramtrace::trace {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, AgreesWithThePublishedExamples) {
  const std::vector<unsigned char> zeros(32, 0);
  const std::vector<unsigned char> ones(32, 0xff);
  std::vector<unsigned char> rising(32);
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<unsigned char>(i);
  for (const auto& crc : {Crc32c, Crc32cPortable}) {
    EXPECT_EQ(crc(0, zeros.data(), zeros.size()), 0x8A9136AAU);
    EXPECT_EQ(crc(0, ones.data(), ones.size()), 0x62A8AB43U);
    EXPECT_EQ(crc(0, rising.data(), rising.size()), 0x46DD794EU);
    EXPECT_EQ(crc(0, "123456789", 9), 0xE3069283U);
    EXPECT_EQ(crc(0, "", 0), 0U);
  }
}

TEST(Crc32c, BothWaysAgreeAtEveryLengthAndContinue) {
  std::mt19937 random(1);
  std::string bytes(300, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const uint32_t whole = Crc32c(0, bytes.data(), size);
    EXPECT_EQ(whole, Crc32cPortable(0, bytes.data(), size)) << size;
    const size_t half = size / 2;
    EXPECT_EQ(whole, Crc32c(Crc32c(0, bytes.data(), half), bytes.data() + half, size - half)) << size;
  }
}

}  // namespace
}  // namespace vramtrace::trace
