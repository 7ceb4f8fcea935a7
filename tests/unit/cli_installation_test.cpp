#include <gtest/gtest.h>

#include "analyzer/cli/launch/installation.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::Write;

TEST(Installation, IsFoundBesideTheExecutable) {
  for (const char* libdir : {"lib", "lib64"}) {
    const Folder prefix;
    Write(prefix / "bin/vramtrace", "");
    Write(prefix.Path() / libdir / "libvramtrace.so", "");
    const auto folder = FindLibraryFolder(prefix / "bin/vramtrace");
    ASSERT_TRUE(folder.ok());
    EXPECT_EQ(folder.value(), prefix / libdir);
    EXPECT_EQ(RecorderIn(folder.value()), prefix.Path() / libdir / "libvramtrace.so");
  }
}

TEST(Installation, NamesWhatIsMissing) {
  const Folder prefix;
  const auto folder = FindLibraryFolder(prefix / "bin/vramtrace");
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().file.find("libvramtrace.so"), std::string::npos);
}

TEST(Simulator, IsPreloadedInTheOrderOfTheList) {
  const Folder lib;
  Write(lib / "vramtrace/simulator/preload.txt", "# core first\nb.so\n\na.so \n");
  Write(lib / "vramtrace/simulator/a.so", "");
  Write(lib / "vramtrace/simulator/b.so", "");
  const auto simulator = FindSimulator(lib.Path());
  ASSERT_TRUE(simulator.ok()) << simulator.error().message;
  const std::filesystem::path folder = lib / "vramtrace/simulator";
  EXPECT_EQ(simulator.value().folder, folder);
  EXPECT_EQ(simulator.value().libraries, (std::vector<std::string>{folder / "b.so", folder / "a.so"}));
}

TEST(Simulator, NamesAMissingLibraryOrList) {
  const Folder lib;
  const auto none = FindSimulator(lib.Path());
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().file.find("preload.txt"), std::string::npos);
  Write(lib / "vramtrace/simulator/preload.txt", "gone.so\n");
  const auto missing = FindSimulator(lib.Path());
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().file.find("gone.so"), std::string::npos);
}

}  // namespace
}  // namespace vramtrace::launch
