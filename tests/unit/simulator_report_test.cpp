#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/device.h"
#include "preload/simulator/core/live_report.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/options.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

using testing::HasSubstr;

class Report : public testing::Test {
 protected:
  void SetUp() override {
    // The process that EXPECT_FRESH starts runs SetUp again and must find the same folder.
    const char* given = std::getenv("VRAMTRACE_TEST_FOLDER");
    folder_ = given != nullptr ? given : testing::TempDir() + "report-" + std::to_string(getpid());
    if (given != nullptr) return;
    owner_ = true;
    std::filesystem::create_directories(folder_);
    setenv("VRAMTRACE_TEST_FOLDER", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (!owner_) return;
    unsetenv("VRAMTRACE_TEST_FOLDER");
    std::filesystem::remove_all(folder_);
  }
  std::string Path(const char* name) const { return folder_ + "/" + name; }
  static std::string Text(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static void UseSome() {
    void* address = nullptr;
    ASSERT_EQ(Allocate(0, 100 * kMebibyte, &address), Status::kOk);
    ASSERT_EQ(Free(address), Status::kOk);
    EXPECT_EQ(Allocate(0, 1000000 * kMebibyte, &address), Status::kOutOfMemory);
  }

  std::string folder_;
  bool owner_ = false;
};

TEST_F(Report, IsWrittenAtExit) {
  Environment report("VRAMTRACE_SIM_REPORT", Path("r.json"));
  EXPECT_FRESH({
    UseSome();
    vramtrace_sim_unsupported("libx.so", "xDo");
    vramtrace_sim_unsupported("libx.so", "xDo");
  });
  std::string text = Text(Path("r.json"));
  uint64_t peak = DeviceAt(0)->context_bytes + 100 * kMebibyte;
  EXPECT_THAT(text, HasSubstr("\"format\": \"vramtrace-simulator-report\""));
  EXPECT_THAT(text, HasSubstr("\"gpu\": \"rtx4090\""));
  EXPECT_THAT(text, HasSubstr("\"peak_used_bytes\": " + std::to_string(peak) + ","));
  EXPECT_THAT(text, HasSubstr("\"refused_allocations\": 1"));
  EXPECT_THAT(text, HasSubstr("{\"library\": \"libx.so\", \"function\": \"xDo\", \"calls\": 2}"));
  EXPECT_FALSE(std::filesystem::exists(Path("r.json.live")));
}

TEST_F(Report, LeavesThePeakOfAKilledProcess) {
  Environment report("VRAMTRACE_SIM_REPORT", Path("k.json"));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        UseSome();
        kill(getpid(), SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_FALSE(std::filesystem::exists(Path("k.json")));
  std::string bytes = Text(Path("k.json.live"));
  ASSERT_EQ(bytes.size(), sizeof(LiveReport));
  LiveReport live;
  std::memcpy(static_cast<void*>(&live), bytes.data(), sizeof live);
  EXPECT_EQ(live.magic, kLiveReportMagic);
  EXPECT_EQ(live.version, kLiveReportVersion);
  EXPECT_EQ(live.device_count, 1u);
  EXPECT_EQ(live.devices[0].total_bytes, 24207 * kMebibyte);
  EXPECT_EQ(live.devices[0].peak_used_bytes, DeviceAt(0)->context_bytes + 100 * kMebibyte);
  EXPECT_EQ(live.devices[0].used_bytes, DeviceAt(0)->context_bytes);
  EXPECT_EQ(live.devices[0].refused_allocations, 1u);
  EXPECT_EQ(live.devices[0].largest_refused_bytes, 1000000 * kMebibyte);
}

TEST_F(Report, IsNoneForAProcessWithoutADevice) {
  Environment report("VRAMTRACE_SIM_REPORT", Path("n.json"));
  EXPECT_FRESH({ EXPECT_EQ(DeviceCount(), 1); });
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Report, CarriesTheProcessId) {
  Environment report("VRAMTRACE_SIM_REPORT", Path("r-%p.json"));
  EXPECT_FRESH({ UseSome(); });
  EXPECT_FRESH({ UseSome(); });
  auto files = std::distance(std::filesystem::directory_iterator(folder_), {});
  EXPECT_EQ(files, 2);
}

TEST_F(Report, OfAForkedChildIsNone) {
  Environment report("VRAMTRACE_SIM_REPORT", Path("f.json"));
  EXPECT_FRESH({
    UseSome();
    pid_t child = fork();
    if (child == 0) std::exit(0);
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(std::filesystem::exists(Path("f.json"))) << "the child has written its parent's report";
  });
  EXPECT_TRUE(std::filesystem::exists(Path("f.json")));
}

TEST_F(Report, ThatCannotBeWrittenIsOneLine) {
  Environment report("VRAMTRACE_SIM_REPORT", "/nonexistent/r.json");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        UseSome();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "cannot write the report /nonexistent/r.json: No such file");
}

TEST_F(Report, CountsReadsOfWhatWasNeverStored) {
  Environment report("VRAMTRACE_SIM_REPORT", Path("i.json"));
  EXPECT_FRESH({
    void* address = nullptr;
    ASSERT_EQ(Allocate(0, 4096, &address), Status::kOk);
    int value = 5;
    ASSERT_EQ(Copy(address, &value, sizeof value), Status::kOk);
    ASSERT_EQ(Copy(&value, address, sizeof value), Status::kOk);
    ASSERT_EQ(Copy(&value, static_cast<char*>(address) + 1024, sizeof value), Status::kOk);
  });
  std::string text = Text(Path("i.json"));
  EXPECT_THAT(text, HasSubstr("\"device_to_host_copies\": 2"));
  EXPECT_THAT(text, HasSubstr("\"invented_reads\": 1"));
}

// The library is loaded first into every process: its copy of the standard library must stay its own.
TEST(Core, ExportsItsInterfaceAlone) {
  FILE* names = popen("nm -D --defined-only " VRAMTRACE_SIMULATOR_FOLDER "/libvramtrace_sim_core.so", "r");
  ASSERT_NE(names, nullptr);
  char line[4096];
  int exported = 0;
  while (std::fgets(line, sizeof line, names) != nullptr) {
    std::string name = std::string(line).substr(std::string(line).rfind(' ') + 1);
    ++exported;
    EXPECT_TRUE(name.starts_with("_ZN9vramtrace9simulator") || name.starts_with("vramtrace_sim") ||
                name.starts_with("_ZN3c1027reportMemoryUsageToProfiler"))
        << name;
  }
  EXPECT_EQ(pclose(names), 0);
  EXPECT_GT(exported, 50);
}

TEST(Options, ParseSizes) {
  uint64_t bytes = 0;
  EXPECT_TRUE(ParseBytes("123", &bytes));
  EXPECT_EQ(bytes, 123u);
  EXPECT_TRUE(ParseBytes("20GiB", &bytes));
  EXPECT_EQ(bytes, 20ull << 30);
  EXPECT_TRUE(ParseBytes("3 MB", &bytes));
  EXPECT_EQ(bytes, 3000000u);
  for (const char* bad : {"", "x", "-1", "12parsec", "99999999999999999999", "18446744073709551615KiB"}) {
    EXPECT_FALSE(ParseBytes(bad, &bytes)) << bad;
  }
}

}  // namespace
}  // namespace vramtrace::simulator
