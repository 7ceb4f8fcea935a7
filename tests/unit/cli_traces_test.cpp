#include <gtest/gtest.h>

#include "analyzer/cli/launch/traces.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::InFolder;
using cli_test::Write;
namespace fs = std::filesystem;

// 2026-12-01 09:30:00.250 UTC.
constexpr std::chrono::system_clock::time_point kStart{std::chrono::milliseconds(1'796'117'400'250)};

std::string NameOf(std::vector<std::string> command) { return ProgramName(command); }

TEST(ProgramName, IsTheScriptsForPython) {
  EXPECT_EQ(NameOf({"python", "-u", "src/train.py", "--batch", "4"}), "train");
  EXPECT_EQ(NameOf({"/usr/bin/python3.11", "-X", "dev", "-W", "ignore", "a.py"}), "a");
  EXPECT_EQ(NameOf({"python", "-m", "pkg.train", "x.py"}), "pkg.train");
  EXPECT_EQ(NameOf({"python", "-c", "print()"}), "python");
  EXPECT_EQ(NameOf({"python"}), "python");
  EXPECT_EQ(NameOf({"torchrun", "--nproc-per-node=2", "train.py"}), "torchrun");
  EXPECT_EQ(NameOf({"./my tool%p"}), "my_tool_p");
  EXPECT_EQ(NameOf({"-"}), "program");
  EXPECT_EQ(NameOf({"python", "-m"}), "python");
  EXPECT_EQ(NameOf({std::string(500, 'x')}).size(), 64U);
}

TEST(TraceOutput, NamesTheRunInTheWorkingFolder) {
  const Folder folder;
  const InFolder here(folder.Path());
  TraceOutput output("", "train", kStart);
  ASSERT_EQ(output.Prepare(), "");
  EXPECT_EQ(output.Folder(), folder.Path());
  EXPECT_EQ(output.Pattern(), folder.Path().string() + "/vramtrace-%n-%p-20261201T093000.250Z.vtrace");
}

TEST(TraceOutput, EscapesPercentInTheFolderOnly) {
  const Folder folder;
  TraceOutput output(folder.Path().string() + "/100%/r%r.vtrace", "train", kStart);
  ASSERT_EQ(output.Prepare(), "");
  EXPECT_EQ(output.Pattern(), folder.Path().string() + "/100%%/r%r.vtrace");
  EXPECT_EQ(output.Pattern("/else"), "/else/r%r.vtrace");
}

TEST(TraceOutput, FindsOnlyWhatThisRunWrote) {
  const Folder folder;
  Write(folder / "out.vtrace", "of yesterday");
  Write(folder / "other.vtrace", "x");
  TraceOutput output((folder / "out.vtrace").string(), "train", kStart);
  ASSERT_EQ(output.Prepare(), "");
  EXPECT_TRUE(output.Find().empty());
  // The recorder never overwrites: it numbers.
  Write(folder / "out-1.vtrace", "of today");
  Write(folder / "out-x.vtrace", "x");
  const auto traces = output.Find();
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].file, folder / "out-1.vtrace");
  EXPECT_EQ(traces[0].bytes, 8U);
}

TEST(TraceOutput, MatchesPlaceholders) {
  const Folder folder;
  TraceOutput output((folder / "a-%p-%h-%%.vtrace").string(), "train", kStart);
  ASSERT_EQ(output.Prepare(), "");
  for (const char* name : {"a-12-host.x-%.vtrace", "a--host-%.vtrace", "a-1b-host-%.vtrace", "a-12--%.vtrace",
                           "a-12-host-%.vtrace.tmp", "a-12-host-%%.vtrace"}) {
    Write(folder / name, "x");
  }
  std::vector<std::string> found;
  for (const Trace& trace : output.Find()) found.push_back(trace.file.filename());
  EXPECT_EQ(found, (std::vector<std::string>{"a-12-host.x-%.vtrace"}));
}

TEST(TraceOutput, GathersSeveralTracesOfOneRun) {
  const Folder folder;
  const InFolder here(folder.Path());
  TraceOutput output("", "torchrun", kStart);
  ASSERT_EQ(output.Prepare(), "");
  Write(folder / "vramtrace-train-10-20261201T093000.250Z.vtrace", "a");
  auto one = output.Find();
  EXPECT_EQ(output.Gather(&one), folder.Path()) << "one trace stays where it is";
  Write(folder / "vramtrace-train-11-20261201T093000.250Z.vtrace", "b");
  auto traces = output.Find();
  ASSERT_EQ(traces.size(), 2U);
  const fs::path run = output.Gather(&traces);
  EXPECT_EQ(run, folder / "vramtrace-torchrun-20261201T093000.250Z");
  for (const Trace& trace : traces) {
    EXPECT_EQ(trace.file.parent_path(), run);
    EXPECT_TRUE(fs::exists(trace.file)) << trace.file;
  }
}

TEST(TraceOutput, LeavesAChosenFolderAsItIs) {
  const Folder folder;
  TraceOutput output((folder / "runs").string() + "/", "train", kStart);
  ASSERT_EQ(output.Prepare(), "");
  ASSERT_TRUE(fs::is_directory(folder / "runs"));
  Write(folder / "runs" / "vramtrace-a-1-20261201T093000.250Z.vtrace", "a");
  Write(folder / "runs" / "vramtrace-a-2-20261201T093000.250Z.vtrace", "b");
  auto traces = output.Find();
  EXPECT_EQ(output.Gather(&traces), folder / "runs");
  EXPECT_EQ(traces[0].file.parent_path(), folder / "runs");
  output.RemoveEmptyFolder();
  EXPECT_TRUE(fs::is_directory(folder / "runs")) << "it is not empty";
}

TEST(TraceOutput, TakesAnEmptyFolderAwayThatItMade) {
  const Folder folder;
  TraceOutput output((folder / "new").string() + "/", "train", kStart);
  ASSERT_EQ(output.Prepare(), "");
  output.RemoveEmptyFolder();
  EXPECT_FALSE(fs::exists(folder / "new"));
  fs::create_directory(folder / "old");
  TraceOutput other((folder / "old").string(), "train", kStart);
  ASSERT_EQ(other.Prepare(), "");
  other.RemoveEmptyFolder();
  EXPECT_TRUE(fs::exists(folder / "old")) << "it was the user's";
}

TEST(TraceOutput, SaysWhyNothingCanBeWritten) {
  const Folder folder;
  Write(folder / "file", "x");
  TraceOutput output((folder / "file/x.vtrace").string(), "train", kStart);
  EXPECT_NE(output.Prepare().find("cannot make this folder"), std::string::npos);
}

}  // namespace
}  // namespace vramtrace::launch
