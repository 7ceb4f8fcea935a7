#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "analyzer/cli/launch/inspect.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::Read;
using cli_test::Write;

TEST(FindCommand, SearchesAsAShellDoes) {
  const Folder folder;
  Write(folder / "one/tool", "#!/bin/sh\n");
  Write(folder / "two/tool", "#!/bin/sh\n");
  const std::string path =
      (folder / "none").string() + ":" + (folder / "one").string() + ":" + (folder / "two").string();
  EXPECT_FALSE(FindCommand("tool", path).has_value()) << "neither can be executed";
  chmod((folder / "two/tool").c_str(), 0755);
  EXPECT_EQ(FindCommand("tool", path), folder / "two/tool");
  EXPECT_EQ(FindCommand((folder / "two/tool").string(), ""), folder / "two/tool");
  EXPECT_FALSE(FindCommand("./tool", path).has_value());
  EXPECT_FALSE(FindCommand("tool", "").has_value());
}

TEST(WhyNotPreloadable, AcceptsThisProgramAndScripts) {
  const Folder folder;
  Write(folder / "script", "#!/bin/sh\nexit 0\n");
  EXPECT_EQ(WhyNotPreloadable("/proc/self/exe"), "");
  EXPECT_EQ(WhyNotPreloadable(folder / "script"), "");
  EXPECT_EQ(WhyNotPreloadable(folder / "none"), "");
}

// This program with something changed: a file that is right in every other respect.
std::string Changed(void (*change)(Elf64_Ehdr*, Elf64_Phdr*)) {
  std::string bytes = Read("/proc/self/exe");
  auto* header = reinterpret_cast<Elf64_Ehdr*>(bytes.data());
  change(header, reinterpret_cast<Elf64_Phdr*>(bytes.data() + header->e_phoff));
  return bytes;
}

TEST(WhyNotPreloadable, RecognisesAStaticProgram) {
  const Folder folder;
  Write(folder / "static", Changed([](Elf64_Ehdr* header, Elf64_Phdr* segments) {
          for (unsigned at = 0; at < header->e_phnum; ++at) {
            if (segments[at].p_type == PT_INTERP) segments[at].p_type = PT_NULL;
          }
        }));
  EXPECT_NE(WhyNotPreloadable(folder / "static").find("statically linked"), std::string::npos);
}

TEST(WhyNotPreloadable, RecognisesAnotherArchitecture) {
  const Folder folder;
  Write(folder / "other", Changed([](Elf64_Ehdr* header, Elf64_Phdr*) { header->e_machine = EM_S390; }));
  EXPECT_NE(WhyNotPreloadable(folder / "other").find("another architecture"), std::string::npos);
  Write(folder / "short", std::string(ELFMAG) + "abc");
  EXPECT_EQ(WhyNotPreloadable(folder / "short"), "");
}

TEST(WhyNotPreloadable, RecognisesOthersRights) {
  const Folder folder;
  Write(folder / "setgid", Read("/proc/self/exe"));
  if (chown((folder / "setgid").c_str(), static_cast<uid_t>(-1), getgid() + 1) != 0) {
    GTEST_SKIP() << "only root gives a file to another group";
  }
  chmod((folder / "setgid").c_str(), 02755);
  EXPECT_NE(WhyNotPreloadable(folder / "setgid").find("ignores LD_PRELOAD"), std::string::npos);
}

}  // namespace
}  // namespace vramtrace::launch
