#include <gtest/gtest.h>
#include <unistd.h>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/scratch_layer.h"
#include "analyzer/cli/launch/shield.h"
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

class ScratchLayerTest : public testing::Test {
 protected:
  ScratchLayerTest() {
    Write(work_ / "model.pt", "weights");
    Write(work_ / "sub/data.bin", "data");
    fs::create_directories(output_);
  }

  // Runs a script in the layer and returns its exit code.
  int Run(const ScratchLayer& layer, const std::string& script) {
    Environment environment(environ);
    environment.Set("TRACE", layer.OutputInside().string());
    environment.Set("PRIVATE", layer.Private().string());
    const SignalQueue signals;
    const Child child = Launch({.command = {"sh", "-ec", script}, .scratch = &layer}, environment, signals);
    EXPECT_GT(child.process, 0) << child.error;
    return ExitCode(Supervise(child, signals, {.time_out = std::chrono::seconds(20)}).wait_status);
  }

  std::unique_ptr<ScratchLayer> Make() {
    std::string why;
    auto layer = ScratchLayer::Create({work_}, output_, &why);
    why_ = why;
    return layer;
  }

  Folder folder_;
  fs::path work_ = folder_ / "my work, here:1";  // what the overlay's options must escape
  fs::path output_ = work_ / "traces";
  std::string why_;
};

TEST_F(ScratchLayerTest, TakesEveryKindOfChange) {
  const InFolder here((fs::create_directories(work_), work_));
  const auto layer = Make();
  if (!layer) GTEST_SKIP() << why_;
  EXPECT_EQ(
      Run(*layer,
          "echo new > model.pt; grep -q new model.pt; rm sub/data.bin; test ! -e sub/data.bin; mkdir ck; "
          "echo 123 > ck/a; mv ck/a ck/b; echo x >> model.pt; rm -r sub; echo p > \"$PRIVATE/report\"; "
          "test \"$PWD\" = '" +
              work_.string() + "'"),
      0);
  EXPECT_EQ(Read(work_ / "model.pt"), "weights");
  EXPECT_EQ(Read(work_ / "sub/data.bin"), "data");
  EXPECT_FALSE(fs::exists(work_ / "ck"));
  EXPECT_EQ(Read(layer->Private() / "report"), "p\n") << "reports are seen outside";
  const auto contents = layer->Written();
  EXPECT_EQ(contents.files, 2U);
  EXPECT_EQ(contents.bytes, 6U + 4U);
}

TEST_F(ScratchLayerTest, LetsTheTraceThrough) {
  const InFolder here(work_);
  const auto layer = Make();
  if (!layer) GTEST_SKIP() << why_;
  EXPECT_EQ(Run(*layer, "echo trace > \"$TRACE/t.vtrace\""), 0);
  EXPECT_EQ(Read(output_ / "t.vtrace"), "trace\n");
}

TEST_F(ScratchLayerTest, IsRemovedOrKept) {
  const InFolder here(work_);
  fs::path root;
  {
    const auto layer = Make();
    if (!layer) GTEST_SKIP() << why_;
    root = layer->Root();
    EXPECT_EQ(Run(*layer, "mkdir -m 000 locked; echo x > a; chmod 000 a"), 0);
  }
  EXPECT_FALSE(fs::exists(root));
  {
    const auto layer = Make();
    ASSERT_TRUE(layer);
    root = layer->Root();
    EXPECT_EQ(Run(*layer, "echo kept > a"), 0);
    layer->Keep();
  }
  EXPECT_EQ(Read(root / "layer0/written/a"), "kept\n");
  EXPECT_FALSE(fs::exists(root / "layer0/work"));
  EXPECT_TRUE(fs::exists(output_)) << "the trace's folder was only bound into it";
  fs::remove_all(root);
}

TEST_F(ScratchLayerTest, RefusesAFolderThatIsNotThere) {
  std::string why;
  EXPECT_EQ(ScratchLayer::Create({work_ / "none"}, output_, &why), nullptr);
  EXPECT_NE(why.find("none"), std::string::npos);
}

TEST_F(ScratchLayerTest, RefusesAFolderWithOtherMountsBelow) {
  std::string why;
  EXPECT_EQ(ScratchLayer::Create({"/"}, output_, &why), nullptr);
  EXPECT_NE(why.find("mounted below"), std::string::npos) << why;
}

TEST_F(ScratchLayerTest, ShieldFallsBackToTheGuard) {
  std::string problem;
  const Shield guarded = RaiseShield({.folders = {work_}, .output = output_, .allow_layer = false}, &problem);
  if (!OverwriteGuard::Available()) {
    EXPECT_NE(problem.find("--in-place"), std::string::npos);
    return;
  }
  EXPECT_EQ(problem, "");
  EXPECT_EQ(guarded.kind, ShieldKind::kOverwriteGuard);
  EXPECT_TRUE(fs::is_directory(guarded.Private()));
  const Shield none = RaiseShield({.folders = {work_}, .output = output_, .in_place = true}, &problem);
  EXPECT_EQ(none.kind, ShieldKind::kNone);
  EXPECT_EQ(none.guard, nullptr);
}

}  // namespace
}  // namespace vramtrace::launch
