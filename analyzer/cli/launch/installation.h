#pragma once
// Where the preload libraries are, seen from the running executable: the build tree and an installed tree
// look alike, bin/vramtrace beside lib/libvramtrace.so and lib/vramtrace/simulator/.

#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/trace/result.h"

namespace vramtrace::launch {

struct Simulator {
  std::filesystem::path folder;        // also holds libcuda.so.1, for TRITON_LIBCUDA_PATH
  std::vector<std::string> libraries;  // absolute, in the order of LD_PRELOAD
};

// The library folder that belongs to an executable: the first of <bin>/../<libdir>, ../lib, ../lib64 with
// libvramtrace.so in it. The error names the first place where it was expected.
[[nodiscard]] trace::Result<std::filesystem::path> FindLibraryFolder(const std::filesystem::path& executable);

// libvramtrace.so in that folder.
[[nodiscard]] std::filesystem::path RecorderIn(const std::filesystem::path& library_folder);

// Reads vramtrace/simulator/preload.txt (a file name a line, # for comments) and checks that every file is
// there.
[[nodiscard]] trace::Result<Simulator> FindSimulator(const std::filesystem::path& library_folder);

// /proc/self/exe, links resolved.
[[nodiscard]] std::filesystem::path ThisExecutable();

}  // namespace vramtrace::launch
