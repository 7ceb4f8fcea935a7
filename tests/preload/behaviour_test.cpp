// Things programs do that a preload library can spoil, with what the program saw and what the trace holds of
// it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "tests/preload/recorded.h"
#include "tests/preload/run_program.h"

namespace vramtrace::tests {
namespace {

using testing::HasSubstr;

struct Counts {
  long allocations = 0;
  long frees = 0;
  bool trailer = false;
};

class Behaviour : public testing::Test {
 protected:
  Ended Go(const std::string& name) {
    return RunProgram({VRAMTRACE_BEHAVIOURS, name}, Preloaded(folder_.File("t.vtrace")));
  }

  // Reads the trace, and checks what holds for every one: an address is allocated once before it is freed,
  // and no sequence number is used twice.
  Counts Read() {
    const Recorded trace(folder_.File("t.vtrace"));
    EXPECT_EQ(trace.error, "");
    Counts counts;
    std::set<uint64_t> live;
    std::set<uint64_t> numbers;
    for (const RecordedPacket& recorded : trace.packets) {
      if (recorded.sequence != 0) {
        EXPECT_TRUE(numbers.insert(recorded.sequence).second);
      }
      counts.trailer = counts.trailer || recorded.packet.has_trailer();
      if (recorded.packet.has_driver_allocate()) {
        ++counts.allocations;
        EXPECT_TRUE(live.insert(recorded.address).second);
      } else if (recorded.packet.has_driver_free()) {
        ++counts.frees;
        EXPECT_EQ(live.erase(recorded.address), 1U);
      }
    }
    return counts;
  }

  ScratchFolder folder_;
};

TEST_F(Behaviour, AllocatesAndFrees) {
  EXPECT_EQ(Go("basic").status, 0);
  const Counts counts = Read();
  EXPECT_EQ(counts.allocations, 2000);
  EXPECT_EQ(counts.frees, 2000);
  EXPECT_TRUE(counts.trailer);
}

TEST_F(Behaviour, ManyThreadsAllocate) {
  EXPECT_EQ(Go("threads").status, 0);
  const Counts counts = Read();
  EXPECT_EQ(counts.allocations, 16000);
  EXPECT_EQ(counts.frees, 16000);
}

TEST_F(Behaviour, AnotherThreadFrees) {
  EXPECT_EQ(Go("free_elsewhere").status, 0);
  const Counts counts = Read();
  EXPECT_EQ(counts.allocations, 2000);
  EXPECT_EQ(counts.frees, 2000);
}

TEST_F(Behaviour, ExceptionsBelongToTheProgramsOwnUnwinder) {
  const Ended ended = Go("throw");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.text, HasSubstr("caught: through a traced process"));
  EXPECT_THAT(ended.text, HasSubstr("unwinder: libgcc_s.so.1"));
}

TEST_F(Behaviour, AForkedChildWritesNothing) {
  const Ended ended = Go("fork");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "");
  EXPECT_EQ(folder_.CountFiles(), 1U);
  const Counts counts = Read();
  EXPECT_EQ(counts.allocations, 2);
  EXPECT_EQ(counts.frees, 1);
  EXPECT_TRUE(counts.trailer);
}

TEST_F(Behaviour, ExitsKeepTheirStatus) {
  const std::map<std::string, int> statuses = {
      {"exit", 7}, {"quick_exit", 7}, {"_exit", 7}, {"abort", 128 + SIGABRT}};
  for (const auto& [name, status] : statuses) {
    const ScratchFolder folder;
    const Ended ended = RunProgram({VRAMTRACE_BEHAVIOURS, name}, Preloaded(folder.File("t.vtrace")));
    EXPECT_EQ(ended.status, status) << name;
    const Recorded trace(folder.File("t.vtrace"));
    EXPECT_EQ(trace.error, "") << name;
    EXPECT_TRUE(std::any_of(trace.packets.begin(), trace.packets.end(), [](const auto& recorded) {
      return recorded.packet.has_driver_allocate();
    })) << name;
  }
}

TEST_F(Behaviour, AKilledProcessLosesNothing) {
  EXPECT_EQ(Go("kill").status, 128 + SIGKILL);
  const Counts counts = Read();
  EXPECT_EQ(counts.allocations, 2000);
  EXPECT_EQ(counts.frees, 2000);
  EXPECT_FALSE(counts.trailer);
}

TEST_F(Behaviour, AFreeAfterTheEndIsHarmless) {
  EXPECT_EQ(Go("destructor").status, 0);
  EXPECT_EQ(Read().allocations, 1);
}

TEST_F(Behaviour, ARuntimeInALocalScopeIsFoundThroughItsCaller) {
  const Ended ended = RunProgram({VRAMTRACE_LOCAL_RUNTIME, VRAMTRACE_LOCAL_RUNTIME_USER},
                                 Preloaded(folder_.File("t.vtrace")));
  EXPECT_EQ(ended.status, 0) << ended.text;
  const Counts counts = Read();
  EXPECT_EQ(counts.allocations, 1);
  EXPECT_EQ(counts.frees, 1);
}

// As the simulated device preloads one runtime of each major.
TEST_F(Behaviour, OfTwoRuntimesTheOneThatTheCallerIsLinkedToIsCalled) {
  Environment environment = Preloaded(folder_.File("t.vtrace"));
  environment["LD_PRELOAD"] += ":" VRAMTRACE_OTHER_RUNTIME;
  const Ended ended = RunProgram({VRAMTRACE_BEHAVIOURS, "basic"}, environment);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_GT(Read().allocations, 0);
}

TEST_F(Behaviour, ProgramsWithoutCudaAreLeftAlone) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"/bin/true"}, {"/bin/ls", "/"}, {"/bin/sh", "-c", "echo a | cat; exit 5"}}) {
    const Ended plain = RunProgram(command, {});
    const Ended traced = RunProgram(command, Preloaded(folder_.File("t.vtrace")));
    EXPECT_EQ(traced.status, plain.status) << command[0];
    EXPECT_EQ(traced.text, plain.text) << command[0];
  }
  EXPECT_EQ(folder_.CountFiles(), 0U);
}

TEST_F(Behaviour, AnUnwritableFolderIsOneLine) {
  Environment environment = Preloaded("/proc/nowhere/t.vtrace");
  const Ended ended = RunProgram({VRAMTRACE_BEHAVIOURS, "basic"}, environment);
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(std::count(ended.text.begin(), ended.text.end(), '\n'), 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("VRAMTRACE_OUTPUT"));
}

}  // namespace
}  // namespace vramtrace::tests
