#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "preload/trace/chunk_file.h"
#include "preload/trace/fault_guard.h"
#include "tests/unit/trace_reading.h"

namespace vramtrace::trace {
namespace {

constexpr uint64_t kChunkBytes = 64 * 1024;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

class ChunkFileTest : public testing::TestWithParam<WriteMode> {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "vramtrace-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/t.vtrace";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] ChunkFile::Settings Settings() const {
    return {.chunk_bytes = kChunkBytes, .max_file_bytes = 0, .mode = GetParam()};
  }
  [[nodiscard]] off_t Size() const {
    struct stat status {};
    return stat(path_.c_str(), &status) == 0 ? status.st_size : -1;
  }
  void Put(const ChunkMemory& memory, char byte) {
    std::memset(memory.bytes, byte, kChunkBytes);
    ASSERT_EQ(file_->WriteThrough(memory, 0, kChunkBytes), FileStatus::kOk);
  }

  std::string folder_;
  std::string path_;
  std::unique_ptr<ChunkFile> file_ = std::make_unique<ChunkFile>();
};

TEST_P(ChunkFileTest, WhatIsInAChunkIsInTheFile) {
  ASSERT_EQ(file_->Create(path_.c_str(), Settings()), FileStatus::kOk);
  for (int i = 0; i < 30; ++i) {
    ChunkMemory memory;
    ASSERT_EQ(file_->Allocate(&memory), FileStatus::kOk);
    EXPECT_EQ(memory.index, static_cast<uint64_t>(i));
    EXPECT_EQ(memory.bytes[0], std::byte{0});
    Put(memory, static_cast<char>('a' + i));
    if (i % 2 == 0) file_->Release(memory);
  }
  EXPECT_GE(Size(), static_cast<off_t>(30 * kChunkBytes));
  file_->Finish();
  EXPECT_EQ(Size(), static_cast<off_t>(30 * kChunkBytes)) << "cut to the chunks in use";
  const std::string bytes = tests::ReadFileBytes(path_);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(bytes.substr(i * kChunkBytes, kChunkBytes),
              std::string(kChunkBytes, static_cast<char>('a' + i)));
  }
}

TEST_P(ChunkFileTest, IsPrivateAndNeverOverwritesAnything) {
  ASSERT_EQ(file_->Create(path_.c_str(), Settings()), FileStatus::kOk);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ChunkFile other;
  EXPECT_EQ(other.Create(path_.c_str(), Settings()), FileStatus::kFailed);
  EXPECT_EQ(errno, EEXIST);
  ASSERT_EQ(symlink("/tmp/elsewhere", (folder_ + "/link").c_str()), 0);
  EXPECT_EQ(other.Create((folder_ + "/link").c_str(), Settings()), FileStatus::kFailed);
}

TEST_P(ChunkFileTest, StopsAtItsLimit) {
  ChunkFile::Settings settings = Settings();
  settings.max_file_bytes = 3 * kChunkBytes + 1;
  ASSERT_EQ(file_->Create(path_.c_str(), settings), FileStatus::kOk);
  ChunkMemory memory;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(file_->Allocate(&memory), FileStatus::kOk);
  EXPECT_EQ(file_->Allocate(&memory), FileStatus::kSizeLimit);
}

// The kernel sends SIGXFSZ to who grows a file over the limit; the file asks first.
TEST_P(ChunkFileTest, TheProcessLimitIsAFullDiskAndNoSignal) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = 5 * kChunkBytes / 2, .rlim_max = 5 * kChunkBytes / 2};
    setrlimit(RLIMIT_FSIZE, &limit);
    ChunkFile& file = *new ChunkFile;
    ChunkMemory memory;
    const bool created = file.Create(path_.c_str(), Settings()) == FileStatus::kOk &&
                         file.Allocate(&memory) == FileStatus::kOk &&
                         file.Allocate(&memory) == FileStatus::kOk;
    _exit(created && file.Allocate(&memory) == FileStatus::kDiskFull ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(ChunkFileTest, ATruncatedOrDeletedFileIsSeen) {
  ASSERT_EQ(file_->Create(path_.c_str(), Settings()), FileStatus::kOk);
  ChunkMemory memory;
  ASSERT_EQ(file_->Allocate(&memory), FileStatus::kOk);
  ASSERT_EQ(truncate(path_.c_str(), 100), 0);
  EXPECT_EQ(file_->Allocate(&memory), FileStatus::kVanished);
  file_->Finish();
  EXPECT_EQ(Size(), 100) << "what was cut is not filled with zeros";

  auto deleted = std::make_unique<ChunkFile>();
  const std::string other = folder_ + "/other.vtrace";
  ASSERT_EQ(deleted->Create(other.c_str(), Settings()), FileStatus::kOk);
  ASSERT_EQ(deleted->Allocate(&memory), FileStatus::kOk);
  ASSERT_EQ(unlink(other.c_str()), 0);
  EXPECT_EQ(deleted->Allocate(&memory), FileStatus::kVanished);
}

// Daemons and os.closerange() close descriptors that are not theirs; the next open() gets the number.
TEST_P(ChunkFileTest, ADescriptorClosedByTheProgramDoesNotHitItsFiles) {
  ASSERT_EQ(file_->Create(path_.c_str(), Settings()), FileStatus::kOk);
  ChunkMemory memory;
  ASSERT_EQ(file_->Allocate(&memory), FileStatus::kOk);
  // Find ours and put a file of the program's in its place.
  struct stat ours {};
  ASSERT_EQ(stat(path_.c_str(), &ours), 0);
  const std::string precious = folder_ + "/precious";
  std::ofstream(precious) << "do not touch";
  const int theirs = open(precious.c_str(), O_RDWR);
  int replaced = 0;
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && status.st_ino == ours.st_ino && status.st_dev == ours.st_dev) {
      ASSERT_EQ(dup2(theirs, descriptor), descriptor);
      replaced = descriptor;
    }
  }
  ASSERT_NE(replaced, 0);
  ASSERT_EQ(file_->Allocate(&memory), FileStatus::kOk) << "the file was opened again by name";
  Put(memory, 'x');
  file_->Finish();
  EXPECT_EQ(Size(), static_cast<off_t>(2 * kChunkBytes));
  EXPECT_EQ(tests::ReadFileBytes(precious), "do not touch");
  close(replaced);
  close(theirs);
}

TEST_P(ChunkFileTest, ItsDescriptorIsNotInheritedAndNotLow) {
  ASSERT_EQ(file_->Create(path_.c_str(), Settings()), FileStatus::kOk);
  struct stat ours {};
  ASSERT_EQ(stat(path_.c_str(), &ours), 0);
  int found = -1;
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && status.st_ino == ours.st_ino && status.st_dev == ours.st_dev) {
      found = descriptor;
    }
  }
  ASSERT_GE(found, 200);
  EXPECT_NE(fcntl(found, F_GETFD) & FD_CLOEXEC, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, ChunkFileTest, testing::Values(WriteMode::kMapped, WriteMode::kPlain),
                         [](const auto& mode) {
                           return mode.param == WriteMode::kPlain ? "Plain" : "Mapped";
                         });

// Runs `body` in a child; its exit status, or minus the signal that ended it.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(FaultGuard, ATruncatedMappingIsReplacedAndNoticed) {
  const std::string path = testing::TempDir() + "vramtrace-guard-" + std::to_string(getpid());
  EXPECT_EQ(InChild([&path] {
              InstallFaultGuard();
              ChunkFile& file = *new ChunkFile;
              ChunkMemory memory;
              const ChunkFile::Settings settings{
                  .chunk_bytes = kChunkBytes, .max_file_bytes = 0, .mode = WriteMode::kMapped};
              if (file.Create(path.c_str(), settings) != FileStatus::kOk) _exit(2);
              if (file.Allocate(&memory) != FileStatus::kOk) _exit(3);
              if (MappingLost()) _exit(4);
              if (truncate(path.c_str(), 0) != 0) _exit(5);
              errno = EDOM;
              std::memset(memory.bytes, 1, kChunkBytes);
              if (errno != EDOM) _exit(6);
              if (!MappingLost()) _exit(7);
              if (memory.bytes[kChunkBytes - 1] != std::byte{1}) _exit(8);
            }),
            0);
  unlink(path.c_str());
}

TEST(FaultGuard, OtherFaultsGoWhereTheyWent) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has the signal";
  const std::string path = testing::TempDir() + "vramtrace-other-" + std::to_string(getpid());
  const auto fault = [&path] {
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (ftruncate(descriptor, 4096) != 0) _exit(2);
    auto* const bytes =
        static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
    if (ftruncate(descriptor, 0) != 0) _exit(3);
    bytes[0] = 1;
  };
  EXPECT_EQ(InChild([&fault] {
              InstallFaultGuard();
              fault();
            }),
            -SIGBUS);
  EXPECT_EQ(InChild([&fault] {
              struct sigaction action {};
              action.sa_handler = [](int) { _exit(42); };
              sigaction(SIGBUS, &action, nullptr);
              InstallFaultGuard();
              fault();
            }),
            42);
  EXPECT_EQ(InChild([] {
              InstallFaultGuard();
              raise(SIGBUS);
            }),
            -SIGBUS);
  unlink(path.c_str());
}

}  // namespace
}  // namespace vramtrace::trace
