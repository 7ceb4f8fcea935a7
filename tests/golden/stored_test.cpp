// Traces that older versions wrote, and what must be read in them whatever becomes of the report's wording.
// The numbers are not to be updated: a reader that finds others has lost something.
#include "tests/golden/stored.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "analyzer/report/build.h"
#include "preload/trace/chunk.h"

namespace vramtrace::testing {
namespace {

using report::v1::Allocation;
using report::v1::Report;

class StoredTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("vramtrace-stored-" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  trace::Result<report::BuiltReport> Read(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return report::BuildReport(path_.string(), {});
  }
  std::filesystem::path path_;
};

// tests/training/mlp.py --steps 2 --hidden 256 on a simulated RTX 4090: PyTorch 2.15.0, CPython 3.11.7.
TEST_F(StoredTrace, Version1) {
  const std::string bytes = ReadStored("v1.vtrace.gz");
  ASSERT_GT(bytes.size(), 0U);
  const auto built = Read(bytes);
  ASSERT_TRUE(built.ok()) << built.error().Sentence();
  EXPECT_FALSE(built.value().damaged);
  const Report& report = built.value().report;
  EXPECT_TRUE(report.trace().complete());
  EXPECT_EQ(report.trace().events(), 428U);
  EXPECT_EQ(report.steps().completed(), 2U);
  EXPECT_EQ(report.steps().batch(), 256U);
  EXPECT_EQ(report.program().torch_version(), "2.15.0+cu132");
  ASSERT_EQ(report.devices_size(), 1);
  const report::v1::DeviceReport& device = report.devices(0);
  EXPECT_TRUE(device.simulated());
  EXPECT_EQ(device.name(), "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(device.peak_allocated().bytes(), 14961152U);
  EXPECT_EQ(device.peak_reserved().bytes(), 31457280U);
  EXPECT_EQ(device.peak_used().bytes(), 478150656U);
  EXPECT_EQ(device.block_allocations(), 149U);
  EXPECT_EQ(device.counter_check().differences(), 0U);
  EXPECT_GT(device.counter_check().comparisons(), 0U);
  std::map<std::string, int> classes;
  std::map<std::string, std::string> weights;  // name -> dtype
  for (const Allocation& allocation : device.at_peak().allocations()) {
    ++classes[allocation.class_()];
    if (allocation.class_() == "weight") weights[allocation.names(0)] = allocation.dtype();
    EXPECT_FALSE(allocation.site().empty());
  }
  EXPECT_EQ(classes["weight"], 10);
  EXPECT_EQ(classes["gradient"], 9);
  EXPECT_EQ(classes["optimizer_state"], 20);
  EXPECT_EQ(weights["layers.0.weight"], "float32");
}

// Cut at every length it loads up to there; in the zeros behind the packets some lengths stand for all.
TEST_F(StoredTrace, Version1Cut) {
  const std::string bytes = ReadStored("v1.vtrace.gz");
  const auto whole = Read(bytes);
  ASSERT_TRUE(whole.ok());
  uint64_t events = 0;
  size_t read = 0;
  for (size_t size = 1; size < bytes.size(); size += size < 2048 ? 61 : 1021) {
    const auto built = Read(bytes.substr(0, size));
    if (!built.ok()) {
      EXPECT_FALSE(built.error().message.empty());
      continue;
    }
    ++read;
    EXPECT_GE(built.value().report.trace().events(), events) << size;
    events = built.value().report.trace().events();
    for (const report::v1::DeviceReport& device : built.value().report.devices()) {
      if (!device.has_at_peak()) continue;
      EXPECT_EQ(device.at_peak().identity().mismatch(), 0) << size;
    }
  }
  EXPECT_LE(events, whole.value().report.trace().events());
  EXPECT_GT(read, 20U);
}

// A bit of each byte of each header flipped: nothing crashes, and whatever is read is no more than there was.
TEST_F(StoredTrace, Version1HeaderBits) {
  const std::string bytes = ReadStored("v1.vtrace.gz");
  const auto whole = Read(bytes);
  ASSERT_TRUE(whole.ok());
  const size_t chunk_bytes = 64 * 1024;
  ASSERT_EQ(bytes.size() % chunk_bytes, 0U);
  for (size_t chunk = 0; chunk < bytes.size(); chunk += chunk_bytes) {
    for (size_t bit = 0; bit < sizeof(trace::ChunkHeader) * 8; bit += 7) {
      std::string changed = bytes;
      changed[chunk + bit / 8] ^= static_cast<char>(1 << bit % 8);
      const auto built = Read(changed);
      if (!built.ok()) continue;
      EXPECT_LE(built.value().report.trace().events(), whole.value().report.trace().events()) << bit;
    }
  }
}

}  // namespace
}  // namespace vramtrace::testing
