#include <gtest/gtest.h>
#include <unistd.h>

#include "analyzer/watch/machine.h"

namespace vramtrace::watch {
namespace {

TEST(WatchMachine, ReadsNamesWithSpacesAndParentheses) {
  const auto state = ParseProcess(
      "42 (a) b (c) D 7 1 1 0 -1 4194304 1000 0 33 0 250 50 0 0 20 0 1 0 100 1000 10 18446744073709551615");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->pid, 42);
  EXPECT_EQ(state->parent, 7);
  EXPECT_EQ(state->state, 'D');
  EXPECT_EQ(state->minor_faults, 1000u);
  EXPECT_EQ(state->major_faults, 33u);
  EXPECT_DOUBLE_EQ(state->cpu_seconds, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

TEST(WatchMachine, RefusesWhatIsNoStat) {
  for (const char* text : {"", "x", "1 (a", "1 (a) S", ")(", "1 (a) S 2 3"}) {
    EXPECT_FALSE(ParseProcess(text).has_value()) << text;
  }
}

TEST(WatchMachine, SeesAProcessCompute) {
  Machine machine;
  machine.Look(::getpid(), {});
  EXPECT_FALSE(Machine().Take(1).has_value());
  const auto before = ReadProcess(::getpid());
  ASSERT_TRUE(before.has_value());
  volatile double sum = 0;
  while (ReadProcess(::getpid())->cpu_seconds < before->cpu_seconds + 0.05) {
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  }
  machine.Look(::getpid(), {});
  const auto rates = machine.Take(0.05);
  ASSERT_TRUE(rates.has_value());
  EXPECT_GT(rates->main_busy, 0.5);
  EXPECT_EQ(rates->workers, 0);
}

TEST(WatchMachine, KnowsItsCores) {
  EXPECT_GT(CoresAllowed(), 0);
  EXPECT_LE(CoresAllowed(), static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace
}  // namespace vramtrace::watch
