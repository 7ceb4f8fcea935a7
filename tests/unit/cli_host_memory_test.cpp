#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "analyzer/cli/launch/host_memory.h"
#include "analyzer/cli/launch/process_tree.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::Write;

constexpr uint64_t kMiB = 1ULL << 20;

void WriteMeminfo(const Folder& root) {
  Write(root / "proc/meminfo",
        "MemTotal:       16777216 kB\nMemFree:        1 kB\nMemAvailable:    8388608 kB\n");
}

TEST(HostRoom, IsTheMachinesWithoutGroups) {
  const Folder root;
  WriteMeminfo(root);
  Write(root / "proc/self/cgroup", "0::/\n");
  const auto room = ReadHostRoom(root.Path().string());
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->total_bytes, 16384 * kMiB);
  EXPECT_EQ(room->available_bytes, 8192 * kMiB);
  EXPECT_FALSE(room->is_group_limit);
}

TEST(HostRoom, IsNotKnownWithoutProc) {
  const Folder root;
  EXPECT_FALSE(ReadHostRoom(root.Path().string()).has_value());
}

TEST(HostRoom, ObeysAParentGroupOfVersion2) {
  const Folder root;
  WriteMeminfo(root);
  Write(root / "proc/self/cgroup", "0::/user/job\n");
  Write(root / "sys/fs/cgroup/user/job/memory.max", "max\n");
  Write(root / "sys/fs/cgroup/user/job/memory.current", "1\n");
  Write(root / "sys/fs/cgroup/user/memory.max", std::to_string(2048 * kMiB) + "\n");
  Write(root / "sys/fs/cgroup/user/memory.current", std::to_string(1536 * kMiB) + "\n");
  Write(root / "sys/fs/cgroup/user/memory.stat",
        "anon 5\ninactive_file " + std::to_string(512 * kMiB) + "\nother 3\n");
  const auto room = ReadHostRoom(root.Path().string());
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->total_bytes, 2048 * kMiB);
  EXPECT_EQ(room->available_bytes, 1024 * kMiB) << "file pages that can go are not held";
  EXPECT_TRUE(room->is_group_limit);
}

TEST(HostRoom, ObeysVersion1InAContainer) {
  const Folder root;
  WriteMeminfo(root);
  Write(root / "proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n");
  Write(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(1024 * kMiB));
  Write(root / "sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(1000 * kMiB));
  Write(root / "sys/fs/cgroup/memory/memory.stat", "total_inactive_file 0\n");
  const auto room = ReadHostRoom(root.Path().string());
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->available_bytes, 24 * kMiB);
}

TEST(HostReserve, IsBounded) {
  EXPECT_EQ(HostReserve(512 * kMiB), 64 * kMiB);
  EXPECT_EQ(HostReserve(1024 * 1024 * kMiB), 1024 * kMiB);
  EXPECT_EQ(HostReserve(10'000 * kMiB), 10'000 * kMiB / 100 * 3);
}

// A child that holds `bytes` of touched memory until it is let go.
class Holder {
 public:
  explicit Holder(size_t bytes) {
    std::array<int, 2> ready{};
    if (pipe(ready.data()) != 0 || pipe(release_.data()) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      close(release_[1]);
      auto* memory = static_cast<char*>(
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
      char byte = 0;
      (void)!write(ready[1], &byte, 1);
      (void)!read(release_[0], &byte, 1);
      _exit(0);
    }
    char byte = 0;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
    close(ready[1]);
    close(release_[0]);
  }
  ~Holder() {
    close(release_[1]);
    waitpid(child_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  [[nodiscard]] pid_t Process() const { return child_; }

 private:
  pid_t child_;
  std::array<int, 2> release_{};
};

TEST(ProcessTree, ListsAndMeasuresDescendants) {
  const Holder holder(64 * kMiB);
  const auto below = Descendants(getpid());
  EXPECT_NE(std::find(below.begin(), below.end(), holder.Process()), below.end());
  EXPECT_GE(HostBytes(holder.Process()), 64 * kMiB);
  EXPECT_LT(HostBytes(holder.Process()), 256 * kMiB);
  EXPECT_EQ(HostBytes(-1), 0U);
}

TEST(HostMemoryWatch, ReportsTheUsersLimit) {
  const Holder holder(64 * kMiB);
  HostMemoryWatch small(32 * kMiB);
  const auto shortage = small.Look(getpid());
  ASSERT_TRUE(shortage.has_value());
  EXPECT_TRUE(shortage->is_asked);
  EXPECT_EQ(shortage->limit_bytes, 32 * kMiB);
  EXPECT_GE(shortage->used_bytes, 64 * kMiB);
  EXPECT_EQ(small.PeakBytes(), shortage->used_bytes);
  HostMemoryWatch large(512 * kMiB);
  EXPECT_FALSE(large.Look(getpid()).has_value());
}

}  // namespace
}  // namespace vramtrace::launch
