// Whatever goes wrong with the file, the program goes on: one line on stderr, its own exit status, no signal.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "preload/recorder/record/recorder.h"
#include "tests/unit/record_scenario.h"

namespace vramtrace::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using v1::Packet;

constexpr uint64_t kMany = 60'000;  // some 2 MB of events
constexpr int kOwnStatus = 7;

void RecordBlocks(uint64_t count) {
  const FakeStack stack(3);
  for (uint64_t n = 0; n < count; ++n) record::BlockAllocated(Block(n), stack.Captured());
}

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Events up to some point and none behind it, a Loss that says so, and a trailer.
void ExpectPrefixAndLoss(const ReadTrace& trace, v1::Loss::Reason reason) {
  const auto events = trace.Events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.rbegin()->first, events.size()) << "a gap";
  EXPECT_GT(events.size(), 1000U);
  EXPECT_LT(events.size(), kMany);
  ASSERT_THAT(trace.Of(Packet::kLoss), SizeIs(1));
  EXPECT_EQ(trace.Of(Packet::kLoss)[0]->packet.loss().reason(), reason);
  EXPECT_GE(trace.Of(Packet::kLoss)[0]->packet.loss().events(), 1U);
  ASSERT_THAT(trace.Of(Packet::kTrailer), SizeIs(1));
  EXPECT_GE(trace.Of(Packet::kTrailer)[0]->packet.trailer().lost_events(), 1U);
  for (const trace::ChunkFields& chunk : trace.chunks) EXPECT_TRUE(chunk.Sealed()) << chunk.index;
}

class RecordFaults : public testing::TestWithParam<const char*> {};

TEST_P(RecordFaults, AFullDiskStopsTheRecordingOnly) {
  Scenario scenario;
  const std::string disk = scenario.Folder() + "/disk";
  ASSERT_EQ(mkdir(disk.c_str(), 0700), 0);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_WRITE", GetParam(), 1);
    setenv("VRAMTRACE_OUTPUT", "disk/", 1);
    errno = EDOM;
    RecordBlocks(kMany);
    EXPECT_EQ(errno, EDOM) << "the program must not see the recorder's errors";
    EXPECT_FALSE(record::Recording());
    std::exit(testing::Test::HasFailure() ? 1 : kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_EQ(Lines(result.standard_error), 1U) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("no space left for the trace"));
  EXPECT_THAT(result.standard_error, HasSubstr("VRAMTRACE_OUTPUT"));
  ExpectPrefixAndLoss(ReadOnlyTrace(result), v1::Loss::REASON_DISK_FULL);
  EXPECT_EQ(umount(disk.c_str()), 0);
}

TEST_P(RecordFaults, AFileSizeLimitStopsTheRecordingOnly) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_WRITE", GetParam(), 1);
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    errno = EDOM;
    RecordBlocks(kMany);
    EXPECT_EQ(errno, EDOM);
    std::exit(testing::Test::HasFailure() ? 1 : kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus) << "minus " << SIGXFSZ << " is SIGXFSZ";
  EXPECT_EQ(Lines(result.standard_error), 1U) << result.standard_error;
  ExpectPrefixAndLoss(ReadOnlyTrace(result), v1::Loss::REASON_DISK_FULL);
}

TEST_P(RecordFaults, TheTracesOwnLimitStopsTheRecordingOnly) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_WRITE", GetParam(), 1);
    setenv("VRAMTRACE_MAX_SIZE", "1MiB", 1);
    RecordBlocks(kMany);
    std::exit(kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_THAT(result.standard_error, HasSubstr("VRAMTRACE_MAX_SIZE"));
  ExpectPrefixAndLoss(ReadOnlyTrace(result), v1::Loss::REASON_STOPPED);
  EXPECT_LE(std::filesystem::file_size(result.traces[0]), 1U << 20);
}

TEST_P(RecordFaults, AFileThatIsCutUnderOurFeetIsNoSignal) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_WRITE", GetParam(), 1);
    setenv("VRAMTRACE_OUTPUT", "t.vtrace", 1);
    RecordBlocks(1000);
    EXPECT_EQ(truncate("t.vtrace", 0), 0);
    RecordBlocks(kMany);
    EXPECT_FALSE(record::Recording());
    std::exit(testing::Test::HasFailure() ? 1 : kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_EQ(Lines(result.standard_error), 1U) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("was deleted or cut"));
}

TEST_P(RecordFaults, AFileThatIsDeletedIsSaidOnce) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_WRITE", GetParam(), 1);
    setenv("VRAMTRACE_OUTPUT", "t.vtrace", 1);
    RecordBlocks(10);
    EXPECT_EQ(unlink("t.vtrace"), 0);
    RecordBlocks(kMany);
    std::exit(kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_EQ(Lines(result.standard_error), 1U) << result.standard_error;
  EXPECT_THAT(result.traces, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Modes, RecordFaults, testing::Values("mapped", "plain"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST(RecordFaults, AFolderThatCannotBeWrittenIsSaidOnceWithTheRemedy) {
  // Root may write anywhere but through a file, in /proc, or into a folder that is not there and cannot be
  // made.
  for (const char* output : {"/dev/null/t.vtrace", "/proc/t.vtrace", "/proc/nowhere/"}) {
    Scenario scenario;
    const auto result = scenario.Run([output] {
      setenv("VRAMTRACE_OUTPUT", output, 1);
      errno = EDOM;
      RecordBlocks(10);
      EXPECT_EQ(errno, EDOM);
      EXPECT_FALSE(record::Recording());
      std::exit(testing::Test::HasFailure() ? 1 : kOwnStatus);
    });
    EXPECT_EQ(result.exit_status, kOwnStatus) << output;
    EXPECT_EQ(Lines(result.standard_error), 1U) << result.standard_error;
    EXPECT_THAT(result.standard_error, HasSubstr(output));
    EXPECT_THAT(result.standard_error, HasSubstr("set VRAMTRACE_OUTPUT to a folder that can be written"));
  }
}

TEST(RecordFaults, ADiskThatIsFullAtTheStartLeavesNoFile) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    RecordBlocks(10);
    std::exit(kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_EQ(Lines(result.standard_error), 1U) << result.standard_error;
  EXPECT_THAT(result.traces, IsEmpty());
}

TEST(RecordFaults, FailOpenSaysWhatAndTheRemedyOnce) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(10);
    record::FailOpen("the allocator's table has an unknown layout", "update vramtrace");
    record::FailOpen("again", "again");
    RecordBlocks(10);
    std::exit(kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_EQ(result.standard_error,
            "vramtrace: recording stopped: the allocator's table has an unknown layout; update vramtrace\n");
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(10));
  ASSERT_THAT(trace.Of(Packet::kLoss), SizeIs(1));
  EXPECT_EQ(trace.Of(Packet::kLoss)[0]->packet.loss().text(), "the allocator's table has an unknown layout");
}

// The program closes all descriptors and opens files of its own with their numbers.
TEST(RecordFaults, ClosedDescriptorsCostNothing) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(10);
    for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
    std::ofstream("precious") << "do not touch";
    const int precious = open("precious", O_RDWR);
    for (int descriptor = 190; descriptor < 260; ++descriptor) dup2(precious, descriptor);
    RecordBlocks(kMany);
    std::exit(kOwnStatus);
  });
  EXPECT_EQ(result.exit_status, kOwnStatus);
  EXPECT_EQ(result.standard_error, "");
  EXPECT_EQ(ReadFileBytes(scenario.Folder() + "/precious"), "do not touch");
  EXPECT_EQ(ReadOnlyTrace(result).Of(Packet::kBlockAllocate).size(), kMany + 10);
}

TEST(RecordFaults, TablesThatAreFullLeaveStacksOutAndCountThem) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_TABLE_MEMORY", "512KiB", 1);
    FakeStack stack(8);
    for (int32_t n = 0; n < 20000; ++n) {
      stack.Frame(0).byte_offset = 2 * n;
      record::BlockAllocated(Block(static_cast<uint64_t>(n)), stack.Captured());
    }
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  const auto blocks = trace.Of(Packet::kBlockAllocate);
  ASSERT_THAT(blocks, SizeIs(20000)) << "the events themselves are kept";
  const auto without =
      static_cast<uint64_t>(std::count_if(blocks.begin(), blocks.end(), [](const ReadPacket* read) {
        return read->packet.block_allocate().stack() == 0;
      }));
  EXPECT_GT(without, 0U);
  EXPECT_LT(without, 20000U);
  ASSERT_THAT(trace.Of(Packet::kLoss), SizeIs(1));
  EXPECT_EQ(trace.Of(Packet::kLoss)[0]->packet.loss().reason(), v1::Loss::REASON_TABLE_FULL);
  EXPECT_EQ(trace.Of(Packet::kLoss)[0]->packet.loss().events(), without);
}

TEST(RecordFaults, CutStacksAreCounted) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    const FakeStack stack(3);
    record::CapturedStack cut = stack.Captured();
    cut.python_truncated = true;
    for (uint64_t n = 0; n < 5; ++n) record::BlockAllocated(Block(n), cut);
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  ASSERT_THAT(trace.Of(Packet::kLoss), SizeIs(1));
  EXPECT_EQ(trace.Of(Packet::kLoss)[0]->packet.loss().reason(), v1::Loss::REASON_STACK_TOO_DEEP);
  EXPECT_EQ(trace.Of(Packet::kLoss)[0]->packet.loss().events(), 5U);
}

// ------------------------------------------------------------------------------------------------ threads

TEST(RecordThreads, AThousandShortThreadsShareAFewChunks) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    for (int i = 0; i < 1000; ++i) {
      std::thread([] { RecordBlocks(3); }).join();
    }
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(3000));
  EXPECT_LE(trace.chunks.size(), 3U);
  std::map<uint32_t, int> events_of;
  for (const auto& [sequence, read] : trace.Events()) ++events_of[read->thread];
  EXPECT_THAT(events_of, SizeIs(1000));
  for (const auto& [thread, events] : events_of) EXPECT_EQ(events, 3) << thread;
}

TEST(RecordThreads, MoreThreadsThanLanesLoseNothing) {
  Scenario scenario;
  constexpr int kThreads = 100;
  constexpr uint64_t kEach = 500;
  const auto result = scenario.Run([] {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&ready] {
        RecordBlocks(1);
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        RecordBlocks(kEach - 1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  std::map<uint32_t, uint64_t> events_of;
  for (const auto& [sequence, read] : trace.Events()) ++events_of[read->thread];
  EXPECT_THAT(events_of, SizeIs(kThreads));
  for (const auto& [thread, events] : events_of) EXPECT_EQ(events, kEach) << thread;
  EXPECT_EQ(trace.Events().rbegin()->first, kThreads * kEach);
}

// Destructors of thread-local objects run around our own; CUDA libraries free in theirs.
TEST(RecordThreads, EventsOfThreadLocalDestructorsAreKept) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    static pthread_key_t key;
    pthread_key_create(&key, [](void* round) {
      RecordBlocks(1);
      const auto next = reinterpret_cast<uintptr_t>(round) + 1;
      if (next <= 3) pthread_setspecific(key, reinterpret_cast<void*>(next));
    });
    for (int i = 0; i < 3; ++i) {
      std::thread([] {
        struct AtThreadEnd {
          ~AtThreadEnd() { RecordBlocks(1); }
        };
        thread_local AtThreadEnd at_thread_end;
        [[maybe_unused]] const AtThreadEnd* const used = &at_thread_end;
        pthread_setspecific(key, reinterpret_cast<void*>(1));
        RecordBlocks(1);
      }).join();
    }
  });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_THAT(ReadOnlyTrace(result).Of(Packet::kBlockAllocate), SizeIs(3 * 5));
}

}  // namespace
}  // namespace vramtrace::tests
