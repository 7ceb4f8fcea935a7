// A recording's beginning, its end, and everything in between that ends a process without asking.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "preload/recorder/record/recorder.h"
#include "tests/unit/record_scenario.h"

namespace vramtrace::tests {
namespace {

using record::CapturedStack;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;
using v1::Packet;

void RecordBlocks(uint64_t count) {
  const FakeStack stack(3);
  for (uint64_t n = 0; n < count; ++n) record::BlockAllocated(Block(n), stack.Captured());
}

TEST(RecordLifecycle, ATraceThatEndedInOrderIsSealedAndHasATrailer) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(10000);
    for (uint64_t n = 0; n < 10; ++n) record::BlockFreed(Block(n), CapturedStack{});
    record::DriverAllocated({.function = "cudaMalloc"}, CapturedStack{});
    std::exit(7);
  });
  EXPECT_EQ(result.exit_status, 7);
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(result.traces[0], MatchesRegex(".*/vramtrace-unit_record-[0-9]+-[0-9]{8}T[0-9]{6}Z\\.vtrace"));
  for (const trace::ChunkFields& chunk : trace.chunks) EXPECT_TRUE(chunk.Sealed()) << chunk.index;
  EXPECT_EQ(std::filesystem::file_size(result.traces[0]), trace.chunks.size() * trace.chunks[0].chunk_bytes);
  ASSERT_THAT(trace.Of(Packet::kTrailer), SizeIs(1));
  const v1::Trailer& trailer = trace.Of(Packet::kTrailer)[0]->packet.trailer();
  EXPECT_EQ(trailer.block_allocations(), 10000U);
  EXPECT_EQ(trailer.block_frees(), 10U);
  EXPECT_EQ(trailer.driver_allocations(), 1U);
  EXPECT_EQ(trailer.events(), 10011U);
  EXPECT_EQ(trailer.lost_events(), 0U);
  EXPECT_THAT(trace.Of(Packet::kLoss), IsEmpty());
  const auto tables = std::find_if(trace.chunks.begin(), trace.chunks.end(),
                                   [](const auto& chunk) { return chunk.kind == trace::ChunkKind::kTables; });
  ASSERT_NE(tables, trace.chunks.end());
}

TEST(RecordLifecycle, AProcessThatLeavesByUnderscoreExitLosesNothing) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(1000);
    _exit(5);
  });
  EXPECT_EQ(result.exit_status, 5);
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(1000));
  EXPECT_THAT(trace.Of(Packet::kTrailer), IsEmpty());
}

// For programs that are stopped from inside, by os._exit.
TEST(RecordLifecycle, ATraceCanBeEndedBeforeTheProcess) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(10);
    record::EndRecording();
    record::EndRecording();
    EXPECT_FALSE(record::Recording());
    RecordBlocks(10);
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(10));
  ASSERT_THAT(trace.Of(Packet::kTrailer), SizeIs(1));
  for (const trace::ChunkFields& chunk : trace.chunks) EXPECT_TRUE(chunk.Sealed()) << chunk.index;
}

TEST(RecordLifecycle, EventsAfterTheEndAreIgnored) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    // Registered before the recorder's own handler, so run after it: what static destructors of libtorch do.
    std::atexit([] {
      RecordBlocks(5);
      record::ModuleNamed(1, 0, "late", "Net");
      record::ProcessLearned({.torch_version = "9"});
    });
    RecordBlocks(1);
  });
  EXPECT_EQ(result.exit_status, 0);
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(1));
  EXPECT_THAT(trace.Of(Packet::kModule), IsEmpty());
  EXPECT_THAT(trace.Of(Packet::kProcess), SizeIs(1));
  EXPECT_TRUE(trace.packets.back().packet.has_trailer() || trace.Of(Packet::kTrailer).size() == 1);
}

// Threads of PyTorch's autograd engine live until the process ends.
TEST(RecordLifecycle, ThreadsThatStillRunAtExitAreSealedToo) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    static std::atomic<int> running{0};
    for (int i = 0; i < 4; ++i) {
      std::thread([] {
        RecordBlocks(100);
        ++running;
        for (uint64_t n = 0;; ++n) {
          record::BlockAllocated(Block(n), CapturedStack{});
          if (n % 64 == 0) std::this_thread::yield();
        }
      }).detach();
    }
    while (running < 4) std::this_thread::yield();
    std::exit(0);
  });
  EXPECT_EQ(result.exit_status, 0);
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kTrailer), SizeIs(1));
  for (const trace::ChunkFields& chunk : trace.chunks) EXPECT_TRUE(chunk.Sealed()) << chunk.index;
  EXPECT_EQ(trace.Events().rbegin()->first, trace.Events().size()) << "no number is missing";
}

// ------------------------------------------------------------------------------------------------ SIGKILL

constexpr size_t kKillThreads = 4;

// Shared with the child: how many calls of each thread have returned.
struct Progress {
  std::array<std::atomic<uint64_t>, kKillThreads> returned;
};

void CheckNothingIsLost(const ReadTrace& trace, const Progress& progress) {
  // The thread's number is the upper half of an event's stream of addresses.
  std::array<std::vector<const ReadPacket*>, kKillThreads> found;
  for (const auto& [sequence, read] : trace.Events()) {
    if (!read->packet.has_block_allocate()) continue;
    const uint64_t thread = read->address >> 40;
    ASSERT_LT(thread, kKillThreads);
    found[thread].push_back(read);
  }
  for (size_t thread = 0; thread < kKillThreads; ++thread) {
    const uint64_t returned = progress.returned[thread];
    ASSERT_GE(found[thread].size(), returned) << "an event whose hook had returned is lost";
    ASSERT_LE(found[thread].size(), returned + 1) << "an event that nobody wrote";
    for (size_t n = 0; n < found[thread].size(); ++n) {
      const v1::BlockAllocate& event = found[thread][n]->packet.block_allocate();
      ASSERT_EQ(found[thread][n]->address, (thread << 40) + n * 512);
      ASSERT_EQ(event.bytes(), n + 1);
      ASSERT_NE(event.stack(), 0U);
    }
  }
}

// Kills a process of several threads at random instants: while chunks are made, tables grow, the file grows.
class RecordKill : public testing::TestWithParam<const char*> {};

TEST_P(RecordKill, NothingThatAHookReturnedFromIsLost) {
  auto* const progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(progress, MAP_FAILED);
  std::mt19937 random(static_cast<uint32_t>(getpid()));
  int killed_in_the_middle = 0;
  constexpr int kRounds = 15;
  constexpr uint64_t kMostEvents = 24'000;  // some chunks a thread
  for (int round = 0; round < kRounds; ++round) {
    for (auto& returned : progress->returned) returned = 0;
    Scenario scenario;
    const pid_t child = scenario.Start([progress] {
      alarm(300);
      setenv("VRAMTRACE_WRITE", GetParam(), 1);
      setenv("VRAMTRACE_CHUNK_SIZE", "64KiB", 1);
      std::vector<std::thread> threads;
      threads.reserve(kKillThreads);
      for (size_t thread = 0; thread < kKillThreads; ++thread) {
        threads.emplace_back([progress, thread] {
          for (uint64_t n = 0;; ++n) {
            // Every fifth stack is a new one, and the threads meet in the tables.
            FakeStack stack(5);
            stack.Frame(0).byte_offset = static_cast<int32_t>(n / 5 * 2);
            record::BlockEvent event = Block(0);
            event.address = (static_cast<uint64_t>(thread) << 40) + n * 512;
            event.bytes = n + 1;
            record::BlockAllocated(event, stack.Captured());
            progress->returned[thread].store(n + 1, std::memory_order_release);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
    // Anywhere from before the first event to deep in the file, each round deeper than the one before, and a
    // moment later: never in step with anything.
    constexpr uint64_t kPart = kMostEvents / kRounds;
    const uint64_t target =
        static_cast<uint64_t>(round) * kPart + std::uniform_int_distribution<uint64_t>(0, kPart)(random);
    const auto recorded = [progress] {
      uint64_t sum = 0;
      for (const auto& returned : progress->returned) sum += returned.load(std::memory_order_relaxed);
      return sum;
    };
    while (recorded() < target && waitpid(child, nullptr, WNOHANG) == 0) usleep(100);
    usleep(std::uniform_int_distribution<useconds_t>(0, 1000)(random));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    const auto result = scenario.Wait(child);
    ASSERT_EQ(result.exit_status, -SIGKILL);
    if (result.traces.empty()) {
      for (const auto& returned : progress->returned) ASSERT_EQ(returned, 0U);
      continue;
    }
    ASSERT_THAT(result.traces, SizeIs(1));
    const ReadTrace trace = ReadTraceBytes(ReadFileBytes(result.traces[0]));
    ASSERT_THAT(trace.faults, IsEmpty());
    ASSERT_THAT(CheckReferences(trace), IsEmpty());
    CheckNothingIsLost(trace, *progress);
    if (trace.chunks.size() > kKillThreads + 1) ++killed_in_the_middle;
  }
  EXPECT_GT(killed_in_the_middle, kRounds / 4)
      << "too few rounds got beyond their first chunks to prove anything";
  munmap(progress, sizeof(Progress));
}

INSTANTIATE_TEST_SUITE_P(Modes, RecordKill, testing::Values("mapped", "plain"),
                         [](const auto& mode) { return std::string(mode.param); });

// --------------------------------------------------------------------------------------------------- fork

// A child of a process that used CUDA cannot use it: whatever it does, the parent's trace is the parent's.
TEST(RecordFork, AChildOfARecordedProcessStaysSilent) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(10);
    const pid_t child = fork();
    if (child == 0) {
      EXPECT_FALSE(record::Recording());
      EXPECT_FALSE(record::EnsureOpen());
      RecordBlocks(1000);
      record::ModuleNamed(1, 0, "child", "Net");
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    RecordBlocks(10);
  });
  EXPECT_EQ(result.standard_error, "");
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(20));
  EXPECT_THAT(trace.Of(Packet::kTrailer), SizeIs(1)) << "the child's exit did not end the parent's trace";
}

// clone() without glibc's fork handlers.
TEST(RecordFork, AChildThatNoHandlerSawStaysSilentToo) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    RecordBlocks(10);
    const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      const bool silent = !record::Recording() && !record::EnsureOpen();
      RecordBlocks(1000);
      _exit(silent ? 0 : 1);
    }
    int status = 0;
    waitpid(static_cast<pid_t>(child), &status, 0);
    EXPECT_EQ(status, 0);
  });
  EXPECT_THAT(ReadOnlyTrace(result).Of(Packet::kBlockAllocate), SizeIs(10));
}

TEST(RecordFork, AChildThatUsesCudaFirstHasATraceOfItsOwn) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    record::ModuleNamed(1, 0, "", "Net");
    for (uint64_t i = 0; i < 2; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        RecordBlocks(10 + i);
        std::exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    RecordBlocks(12);
  });
  ASSERT_THAT(result.traces, SizeIs(3));
  std::vector<size_t> blocks;
  for (const std::string& path : result.traces) {
    const ReadTrace trace = ReadTraceBytes(ReadFileBytes(path));
    EXPECT_THAT(trace.faults, IsEmpty());
    EXPECT_THAT(CheckReferences(trace), IsEmpty());
    EXPECT_THAT(trace.Of(Packet::kModule), SizeIs(1)) << "the model was built before the fork";
    ASSERT_THAT(trace.Of(Packet::kProcess), SizeIs(1));
    const uint32_t pid = trace.Of(Packet::kProcess)[0]->packet.process().pid();
    EXPECT_THAT(path, HasSubstr("-" + std::to_string(pid) + "-"));
    for (const trace::ChunkFields& chunk : trace.chunks) EXPECT_EQ(chunk.process_id, pid);
    blocks.push_back(trace.Of(Packet::kBlockAllocate).size());
  }
  std::sort(blocks.begin(), blocks.end());
  EXPECT_THAT(blocks, ElementsAre(10, 11, 12));
}

TEST(RecordFork, ForksWhileThreadsRecordDoNotHang) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    alarm(300);
    RecordBlocks(1);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.reserve(2);
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&stop, thread] {
        for (int32_t n = 0; !stop; ++n) {
          FakeStack stack(3, thread * 8);
          stack.Frame(0).byte_offset = n * 2;  // always a new stack: always in the tables' lock
          record::BlockAllocated(Block(0), stack.Captured());
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        RecordBlocks(3);
        record::FeatureSet("child", true, "");
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(result.exit_status, 0);
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kFeature), IsEmpty());
}

// ------------------------------------------------------------------------------------------------- output

TEST(RecordOutput, AFolderGetsTheDefaultNameAndIsMade) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_OUTPUT", "a/b/", 1);
    RecordBlocks(1);
  });
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_THAT(result.traces[0], HasSubstr("/a/b/vramtrace-unit_record-"));
}

TEST(RecordOutput, PlaceholdersAreReplaced) {
  Scenario scenario;
  pid_t child = 0;
  const auto result = scenario.Wait(child = scenario.Start([] {
    setenv("OMPI_COMM_WORLD_RANK", "5", 1);
    setenv("VRAMTRACE_OUTPUT", "run-%r-%p.vtrace", 1);
    RecordBlocks(1);
  }));
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_THAT(result.traces[0], testing::EndsWith("/run-5-" + std::to_string(child) + ".vtrace"));
}

TEST(RecordOutput, AnExistingFileIsNeverOverwritten) {
  Scenario scenario;
  std::ofstream(scenario.Folder() + "/t.vtrace") << "mine";
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_OUTPUT", "t.vtrace", 1);
    RecordBlocks(1);
  });
  EXPECT_EQ(ReadFileBytes(scenario.Folder() + "/t.vtrace"), "mine");
  ASSERT_THAT(result.traces, SizeIs(2));
  EXPECT_THAT(result.traces[0], testing::EndsWith("/t-1.vtrace"));
}

TEST(RecordOutput, TheRecorderCanBeTurnedOff) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_RECORD", "0", 1);
    EXPECT_FALSE(record::EnsureOpen());
    RecordBlocks(10);
  });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.traces, IsEmpty());
}

TEST(RecordOutput, VerboseNamesTheFileAndTheOptions) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_VERBOSE", "1", 1);
    setenv("VRAMTRACE_MAX_SIZE", "lots", 1);
    RecordBlocks(1);
  });
  EXPECT_THAT(result.standard_error, HasSubstr("VRAMTRACE_MAX_SIZE=lots makes no sense; using 2GiB"));
  EXPECT_THAT(result.standard_error, HasSubstr("VRAMTRACE_CHUNK_SIZE=256KiB  "));
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_THAT(result.standard_error, HasSubstr("recording to " + result.traces[0] + "\n"));
}

}  // namespace
}  // namespace vramtrace::tests
