#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "preload/recorder/record/options.h"
#include "preload/recorder/record/output_path.h"

namespace vramtrace::record {
namespace {

std::map<std::string, std::string>& Environment() {
  static std::map<std::string, std::string> environment;
  return environment;
}

Options Read(std::map<std::string, std::string> environment) {
  Environment() = std::move(environment);
  return ReadOptions([](const char* name) -> const char* {
    const auto found = Environment().find(name);
    return found == Environment().end() ? nullptr : found->second.c_str();
  });
}

TEST(Options, HaveDefaults) {
  const Options options = Read({});
  EXPECT_STREQ(options.output, "");
  EXPECT_TRUE(options.record);
  EXPECT_FALSE(options.verbose);
  EXPECT_EQ(options.max_size, uint64_t{2} << 30);
  EXPECT_EQ(options.chunk_size, 256U << 10);
  EXPECT_EQ(options.write, WriteChoice::kAutomatic);
}

TEST(Options, AreReadFromTheEnvironment) {
  const Options options = Read({{"VRAMTRACE_OUTPUT", "x/"},
                                {"VRAMTRACE_RECORD", "off"},
                                {"VRAMTRACE_VERBOSE", "Yes"},
                                {"VRAMTRACE_MAX_SIZE", "0"},
                                {"VRAMTRACE_WRITE", "plain"}});
  EXPECT_STREQ(options.output, "x/");
  EXPECT_FALSE(options.record);
  EXPECT_TRUE(options.verbose);
  EXPECT_EQ(options.max_size, 0U);
  EXPECT_EQ(options.write, WriteChoice::kPlain);
}

TEST(Options, WhatMakesNoSenseLeavesTheDefault) {
  testing::internal::CaptureStderr();
  const Options options = Read({{"VRAMTRACE_WRITE", "fast"}, {"VRAMTRACE_MAX_SIZE", "-1"}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "vramtrace: VRAMTRACE_MAX_SIZE=-1 makes no sense; using 2GiB\n"
            "vramtrace: VRAMTRACE_WRITE=fast makes no sense; using auto\n");
  EXPECT_EQ(options.max_size, uint64_t{2} << 30);
}

TEST(Options, TheChunkIsWholePagesWithinItsBounds) {
  EXPECT_EQ(Read({{"VRAMTRACE_CHUNK_SIZE", "1"}}).chunk_size, 64U << 10);
  EXPECT_EQ(Read({{"VRAMTRACE_CHUNK_SIZE", "100000"}}).chunk_size, 64U << 10);
  EXPECT_EQ(Read({{"VRAMTRACE_CHUNK_SIZE", "1GiB"}, {"VRAMTRACE_MAX_SIZE", "0"}}).chunk_size, 16U << 20);
  // A small file of large chunks would leave nothing to choose from.
  EXPECT_EQ(Read({{"VRAMTRACE_MAX_SIZE", "32MiB"}}).chunk_size, 128U << 10);
  EXPECT_EQ(Read({{"VRAMTRACE_MAX_SIZE", "1MiB"}}).chunk_size, 64U << 10);
}

TEST(ParseBytes, TakesBinaryUnits) {
  const auto parse = [](const char* text) {
    uint64_t bytes = 12345;
    return ParseBytes(text, &bytes) ? bytes : UINT64_MAX;
  };
  EXPECT_EQ(parse("4096"), 4096U);
  EXPECT_EQ(parse("64KiB"), 65536U);
  EXPECT_EQ(parse("64 kb"), 65536U);
  EXPECT_EQ(parse("1.5GiB"), 1610612736U);
  EXPECT_EQ(parse("2G"), uint64_t{2} << 30);
  EXPECT_EQ(parse("1T"), uint64_t{1} << 40);
  for (const char* bad : {"", "x", "-1", "1X", "1GiBs", "nan", "1e30", "GiB"}) {
    EXPECT_EQ(parse(bad), UINT64_MAX) << bad;
  }
}

const OutputNames kNames{
    .program = "train", .process_id = 42, .rank = 3, .host = "node7", .start_unix_ns = 1796117400'123456789U};

std::string PathOf(const char* pattern) {
  char path[4096];
  return MakeOutputPath(pattern, kNames, path, sizeof(path)) ? path : "(too long)";
}

TEST(OutputPath, ReplacesPlaceholders) {
  EXPECT_EQ(PathOf("/x/%n-%p-%r-%h-%t.vtrace"), "/x/train-42-3-node7-20261201T093000Z.vtrace");
  EXPECT_EQ(PathOf("/x/100%%-%q-%"), "/x/100%-%q-%");
}

TEST(OutputPath, AFolderGetsTheDefaultName) {
  const std::string name = "vramtrace-train-42-20261201T093000Z.vtrace";
  EXPECT_EQ(PathOf("/nowhere/"), "/nowhere/" + name);
  EXPECT_EQ(PathOf("/tmp"), "/tmp/" + name);
  EXPECT_TRUE(PathOf("").ends_with("/" + name));
  EXPECT_TRUE(PathOf("")[0] == '/') << "absolute, whatever chdir comes";
}

TEST(OutputPath, RefusesWhatDoesNotFit) {
  EXPECT_EQ(PathOf(("/" + std::string(5000, 'x')).c_str()), "(too long)");
  char path[20];
  EXPECT_FALSE(MakeOutputPath("/x/", kNames, path, sizeof(path)));
  EXPECT_LT(std::strlen(path), sizeof(path));
}

TEST(AlternativePath, NumbersComeBeforeTheEnding) {
  char path[64];
  ASSERT_TRUE(MakeAlternativePath("/a.b/t.vtrace", 2, path, sizeof(path)));
  EXPECT_STREQ(path, "/a.b/t-2.vtrace");
  ASSERT_TRUE(MakeAlternativePath("/a.b/t", 12, path, sizeof(path)));
  EXPECT_STREQ(path, "/a.b/t-12");
  ASSERT_TRUE(MakeAlternativePath("/a/.hidden", 1, path, sizeof(path)));
  EXPECT_STREQ(path, "/a/.hidden-1");
}

}  // namespace
}  // namespace vramtrace::record
