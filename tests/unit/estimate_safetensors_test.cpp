#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "analyzer/estimate/safetensors.h"

namespace vramtrace::estimate {
namespace {

using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  // A file with this header, and `data` bytes behind it. `announced`: what the prefix says instead of the
  // truth.
  std::string Write(const std::string& name, const std::string& header, uint64_t data,
                    uint64_t announced = 0) {
    const std::string path = (folder_ / name).string();
    std::ofstream stream(path, std::ios::binary);
    const uint64_t length = announced != 0 ? announced : header.size();
    for (int at = 0; at < 8; ++at) stream.put(static_cast<char>(length >> (8 * at)));
    stream << header;
    stream << std::string(data, '\0');
    return path;
  }

  std::string ErrorOf(const std::string& header, uint64_t data, uint64_t announced = 0) {
    const trace::Result<StoredTensors> read =
        ReadSafetensors(Write("x.safetensors", header, data, announced));
    return read.ok() ? "" : read.error().Sentence();
  }

  std::filesystem::path folder_;
};

TEST_F(Safetensors, AreSummedOverAFolder) {
  Write("a.safetensors",
        R"({"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})", 12);
  Write(
      "b.safetensors",
      R"({"v":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"q":{"dtype":"F4","shape":[3],"data_offsets":[4,6]}})",
      6);
  const auto all = TensorsBeside((folder_ / "config.json").string());
  ASSERT_TRUE(all.ok()) << all.error().Sentence();
  ASSERT_TRUE(all.value());
  EXPECT_EQ(all.value()->files, 2u);
  EXPECT_EQ(all.value()->tensors, 3u);
  EXPECT_EQ(all.value()->elements, 10u);
  EXPECT_EQ(all.value()->bytes, 18u);
  EXPECT_EQ(all.value()->bytes_by_dtype.at("BF16"), 12u);
}

TEST_F(Safetensors, MayBeMissing) {
  const auto none = TensorsBeside((folder_ / "config.json").string());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none.value());
}

TEST_F(Safetensors, HostileHeadersAreSentences) {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(ErrorOf(tensor("F32", "[2]", "[0,8]"), 8), "");
  EXPECT_THAT(ErrorOf("{}", 0, uint64_t{1} << 62),
              HasSubstr("byte 0: a header of 4611686018427387904 bytes"));
  EXPECT_THAT(ErrorOf("{}", 0, 200'000'000), HasSubstr("a header of 200000000"));
  EXPECT_THAT(ErrorOf("{\"t\":", 0), HasSubstr("not JSON from here on"));
  EXPECT_THAT(ErrorOf("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(R"({"t":5})", 0), HasSubstr("tensor 't': an object"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[-2]", "[0,8]"), 8), HasSubstr("its shape is not"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[4294967296,4294967296]", "[0,8]"), 8), HasSubstr("2^50"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[1.5]", "[0,8]"), 8), HasSubstr("its shape is not"));
  EXPECT_THAT(ErrorOf(tensor("F99", "[2]", "[0,8]"), 8), HasSubstr("dtype 'F99'"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0,4]"), 8), HasSubstr("its shape needs 8 bytes"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[8,0]"), 8), HasSubstr("its shape needs"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[100,108]"), 8), HasSubstr("ends at byte 108"));
  EXPECT_THAT(ErrorOf(tensor("F32", "[2]", "[0]"), 8), HasSubstr("not a pair"));
  EXPECT_THAT(ErrorOf("{\"t\":" + std::string(100'000, '['), 0), HasSubstr("x.safetensors"));
}

TEST_F(Safetensors, ShortFilesAreSentences) {
  const std::string path = (folder_ / "short.safetensors").string();
  std::ofstream(path) << "abc";
  EXPECT_THAT(ReadSafetensors(path).error().Sentence(), HasSubstr("the file is shorter"));
  EXPECT_THAT(ReadSafetensors((folder_ / "none.safetensors").string()).error().Sentence(),
              HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace vramtrace::estimate
