#include <gtest/gtest.h>

#include "analyzer/cli/launch/environment.h"

namespace vramtrace::launch {
namespace {

TEST(Environment, SetsReplacesAndRemovesByName) {
  const char* const entries[] = {"PATH=/bin", "PATHS=x", "ODD", "EMPTY=", nullptr};
  Environment environment(entries);
  EXPECT_EQ(environment.Get("PATH"), "/bin");
  EXPECT_EQ(environment.Get("EMPTY"), "");
  EXPECT_FALSE(environment.Get("PAT").has_value());
  EXPECT_FALSE(environment.Get("ODD").has_value());
  environment.Set("PATH", "/usr/bin");
  environment.SetDefault("PATHS", "y");
  environment.SetDefault("NEW", "1");
  environment.Remove("EMPTY");
  const auto pointers = environment.Pointers();
  ASSERT_EQ(pointers.size(), 5U);
  EXPECT_STREQ(pointers[0], "PATH=/usr/bin");
  EXPECT_STREQ(pointers[1], "PATHS=x");
  EXPECT_STREQ(pointers[2], "ODD");
  EXPECT_STREQ(pointers[3], "NEW=1");
  EXPECT_EQ(pointers[4], nullptr);
}

TEST(Environment, PreloadsOursFirstAndKeepsTheUsers) {
  const char* const entries[] = {"LD_PRELOAD=/a/jemalloc.so /lib/ours.so:/b/x.so", nullptr};
  Environment environment(entries);
  EXPECT_FALSE(environment.Preload({"/lib/ours.so", "/lib/sim.so"}).has_value());
  EXPECT_EQ(environment.Get("LD_PRELOAD"), "/lib/ours.so:/lib/sim.so:/a/jemalloc.so:/b/x.so");
}

TEST(Environment, RefusesAPathThatTheLoaderWouldSplit) {
  const char* const entries[] = {"LD_PRELOAD=/a.so", nullptr};
  Environment environment(entries);
  EXPECT_EQ(environment.Preload({"/my programs/ours.so"}), "/my programs/ours.so");
  EXPECT_EQ(environment.Preload({"/a:b/ours.so"}), "/a:b/ours.so");
  EXPECT_EQ(environment.Get("LD_PRELOAD"), "/a.so");
}

}  // namespace
}  // namespace vramtrace::launch
