#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/overwrite_guard.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/supervise.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::InFolder;
using cli_test::Read;
using cli_test::Write;
namespace fs = std::filesystem;

// What stops a run and what does not. The script runs in a folder with: model.pt, sub/data.bin, an empty
// lock, a link `latest` to model.pt, __pycache__/m.pyc, and outside of it a file ../outside/log.
struct Case {
  const char* name;
  const char* script;
  const char* deed;  // nullptr: must not stop; else what it was about to do, with the file
};

constexpr Case kCases[] = {
    {"truncates", "echo x > model.pt", "open {}/model.pt for writing"},
    {"appends", "echo x >> sub/data.bin", "open {}/sub/data.bin for writing"},
    {"throughALink", "echo x > latest", "open {}/model.pt for writing"},
    {"byAnotherName", "echo x > sub/../model.pt", "open {}/model.pt for writing"},
    {"afterChangingFolder", "cd sub && echo x > data.bin", "open {}/sub/data.bin for writing"},
    {"removes", "rm -f sub/data.bin", "remove {}/sub/data.bin"},
    {"removesALink", "rm -f latest", "remove {}/latest"},
    {"removesATree", "rm -rf sub", "remove {}/sub/data.bin"},
    {"renames", "mv model.pt old.pt", "rename {}/model.pt"},
    {"renamesAFolder", "mv sub sub2", "rename {}/sub"},
    {"replaces", "echo x > new.pt; mv -f new.pt model.pt", "replace {}/model.pt"},
    {"inAGrandchild", "(sh -c 'sh -c \"echo x > model.pt\"')", "open {}/model.pt for writing"},
    {"truncatesByName", "truncate -s 0 model.pt", "open {}/model.pt for writing"},
    {"reads", "cat model.pt > /dev/null", nullptr},
    {"makesAndChangesItsOwn", "echo 1 > a; echo 2 > a; echo 3 >> a; mv a b; rm b; mkdir c; mv c d; rmdir d",
     nullptr},
    {"writesAnEmptyFile", "echo x > lock", nullptr},
    {"writesACache", "echo x > __pycache__/m.pyc", nullptr},
    {"writesElsewhere", "echo x > ../outside/log", nullptr},
    {"writesDevices", "echo x > /dev/null; echo x > /dev/stderr", nullptr},
    {"failsByItself", "echo x > none/a; rm none; mv none b; cat none; true", nullptr},
};

class OverwriteGuardTest : public testing::TestWithParam<Case> {
 protected:
  OverwriteGuardTest() {
    work_ = folder_ / "work";
    Write(work_ / "model.pt", "weights");
    Write(work_ / "sub/data.bin", "data");
    Write(work_ / "lock", "");
    Write(work_ / "__pycache__/m.pyc", "code");
    Write(folder_ / "outside/log", "log");
    fs::create_symlink("model.pt", work_ / "latest");
    usleep(20'000);  // a tick of the file system's clock
  }
  Folder folder_;
  fs::path work_;
};

TEST_P(OverwriteGuardTest, StopsExactlyWhatChangesAnExistingFile) {
  if (!OverwriteGuard::Available()) GTEST_SKIP() << "this kernel has no seccomp notifications";
  const InFolder here(work_);
  OverwriteGuard guard({work_});
  Environment environment(environ);
  const SignalQueue signals;
  const Child child = Launch(
      {.command = {"sh", "-c", std::string(GetParam().script) + " 2> /dev/null; echo $? > status; exit 0"},
       .guarded = true},
      environment, signals);
  ASSERT_GT(child.process, 0) << child.error;
  const Ending ending = Supervise(child, signals, {.time_out = std::chrono::seconds(20), .guard = &guard});
  close(child.guard);

  if (GetParam().deed == nullptr) {
    EXPECT_FALSE(ending.stop.has_value());
    EXPECT_EQ(Read(work_ / "status"), "0\n");
  } else {
    ASSERT_TRUE(ending.stop.has_value());
    ASSERT_TRUE(std::holds_alternative<Overwrite>(*ending.stop));
    std::string deed = GetParam().deed;
    deed.replace(deed.find("{}"), 2, work_.string());
    EXPECT_EQ(std::get<Overwrite>(*ending.stop).deed, deed);
  }
  EXPECT_EQ(Read(work_ / "model.pt"), "weights");
  EXPECT_EQ(Read(work_ / "sub/data.bin"), "data");
  EXPECT_EQ(fs::read_symlink(work_ / "latest"), "model.pt");
}

INSTANTIATE_TEST_SUITE_P(Scripts, OverwriteGuardTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(OverwriteGuard, KnowsOldFromNewByTheFileSystemsClock) {
  const Folder folder;
  Write(folder / "old", "x");
  usleep(20'000);
  const OverwriteGuard guard({folder.Path()});
  usleep(20'000);
  Write(folder / "new", "x");
  EXPECT_TRUE(guard.IsProtected(folder / "old"));
  EXPECT_FALSE(guard.IsProtected(folder / "new"));
  EXPECT_FALSE(guard.IsProtected(folder / "none"));
  EXPECT_FALSE(guard.IsProtected("/etc/passwd"));
  // Old content with a new name is still the run's own; a future modification time does not help an old file.
  const timespec times[2] = {{.tv_sec = 4'000'000'000, .tv_nsec = 0},
                             {.tv_sec = 4'000'000'000, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (folder / "old").c_str(), times, 0), 0);
  struct statx status = {};
  ASSERT_EQ(statx(AT_FDCWD, (folder / "old").c_str(), 0, STATX_BTIME, &status), 0);
  if ((status.stx_mask & STATX_BTIME) != 0) {
    EXPECT_TRUE(guard.IsProtected(folder / "old"));
  }
}

}  // namespace
}  // namespace vramtrace::launch
