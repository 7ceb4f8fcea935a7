#pragma once
// Files for the analyzer's tests.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/trace_builder.h"

namespace vramtrace::testing {

// A folder of its own for each test, gone afterwards.
class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::temp_directory_path() / (std::string("vramtrace-") + info->test_suite_name() + "-" +
                                                  info->name() + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes `bytes` into the folder and answers the path.
  std::string Write(const std::string& bytes, const std::string& name = "run.vtrace") {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }
  std::string Write(TraceBuilder* builder) { return Write(builder->Bytes()); }

  std::filesystem::path folder_;
};

}  // namespace vramtrace::testing
