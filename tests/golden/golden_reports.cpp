// Compares every scenario's report with its text. `--update` writes the texts instead.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "analyzer/report/build.h"
#include "analyzer/report/dump.h"
#include "analyzer/report/table.h"
#include "analyzer/report/text.h"
#include "tests/golden/scenarios.h"

namespace vramtrace::testing {
namespace {

bool g_update = false;

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class GoldenReports : public ::testing::TestWithParam<Scenario> {
 protected:
  // The trace's path is in the report: the same for everybody.
  void SetUp() override {
    before_ = std::filesystem::current_path();
    folder_ = std::filesystem::temp_directory_path() /
              ("vramtrace-golden-" + std::string(GetParam().name) + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
    std::ofstream("run.vtrace", std::ios::binary) << GetParam().bytes();
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  static void Compare(const std::string& text, const std::string& ending) {
    const std::string path = std::string(GOLDEN_FOLDER) + "/" + GetParam().name + ending;
    if (g_update) {
      std::ofstream(path, std::ios::binary) << text;
      return;
    }
    EXPECT_EQ(text, ReadFile(path)) << "read the difference; if it is meant, run golden_reports --update";
  }

 private:
  std::filesystem::path before_;
  std::filesystem::path folder_;
};

class GoldenDumps : public GoldenReports {};

void ExpectIdentityHolds(const report::v1::Breakdown& breakdown) {
  int64_t sum = 0;
  for (const report::v1::Term& term : breakdown.identity().terms()) sum += term.bytes();
  EXPECT_EQ(sum, static_cast<int64_t>(breakdown.identity().device_used()));
  EXPECT_EQ(breakdown.identity().mismatch(), 0);
}

void ExpectReadable(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(report::DisplayWidth(line), 100U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
  }
}

TEST_P(GoldenReports, Text) {
  const auto built = report::BuildReport("run.vtrace", {});
  ASSERT_TRUE(built.ok()) << built.error().Sentence();
  EXPECT_EQ(built.value().damaged, GetParam().damaged);
  for (const report::v1::DeviceReport& device : built.value().report.devices()) {
    if (device.has_at_peak()) ExpectIdentityHolds(device.at_peak());
    if (device.has_at_refusal()) ExpectIdentityHolds(device.at_refusal());
  }
  const std::string text = report::ToText(built.value().report, {});
  ExpectReadable(text);
  Compare(text, ".txt");
}

TEST_P(GoldenDumps, Dump) {
  std::string text;
  ASSERT_TRUE(
      report::DumpTrace("run.vtrace", [&](std::string_view line) { text.append(line) += '\n'; }).ok());
  Compare(text, ".dump.txt");
}

// The scenarios whose packets are kept as text too.
std::vector<Scenario> Dumped() {
  std::vector<Scenario> dumped;
  std::copy_if(Scenarios().begin(), Scenarios().end(), std::back_inserter(dumped),
               [](const Scenario& scenario) { return scenario.dump; });
  return dumped;
}

std::string NameOf(const ::testing::TestParamInfo<Scenario>& scenario) { return scenario.param.name; }

INSTANTIATE_TEST_SUITE_P(Scenarios, GoldenReports,
                         ::testing::ValuesIn(Scenarios().begin(), Scenarios().end()), NameOf);
INSTANTIATE_TEST_SUITE_P(Scenarios, GoldenDumps, ::testing::ValuesIn(Dumped()), NameOf);

}  // namespace
}  // namespace vramtrace::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update") vramtrace::testing::g_update = true;
  }
  return RUN_ALL_TESTS();
}
