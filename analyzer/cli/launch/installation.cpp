#include "analyzer/cli/launch/installation.h"

#include <fmt/format.h>

#include <fstream>

namespace vramtrace::launch {
namespace fs = std::filesystem;

fs::path ThisExecutable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

fs::path RecorderIn(const fs::path& library_folder) { return library_folder / "libvramtrace.so"; }

trace::Result<fs::path> FindLibraryFolder(const fs::path& executable) {
  const fs::path prefix = executable.parent_path().parent_path();
  std::error_code error;
  for (const char* libdir : {VRAMTRACE_LIBDIR, "lib", "lib64"}) {
    const fs::path folder = prefix / libdir;
    if (fs::exists(RecorderIn(folder), error)) return fs::weakly_canonical(folder, error);
  }
  return trace::Error{.file = RecorderIn(prefix / VRAMTRACE_LIBDIR).string(),
                      .offset = std::nullopt,
                      .message = "not found; it is installed beside the vramtrace command (cmake --install)"};
}

trace::Result<Simulator> FindSimulator(const fs::path& library_folder) {
  Simulator simulator{.folder = library_folder / "vramtrace" / "simulator", .libraries = {}};
  const fs::path list = simulator.folder / "preload.txt";
  std::ifstream file(list);
  std::string name;
  while (std::getline(file, name)) {
    while (!name.empty() && (name.back() == ' ' || name.back() == '\r')) name.pop_back();
    if (name.empty() || name[0] == '#') continue;
    const fs::path library = simulator.folder / name;
    std::error_code error;
    if (!fs::exists(library, error)) {
      return trace::Error{
          .file = library.string(),
          .offset = std::nullopt,
          .message = "not found, though preload.txt names it; install the simulated device again"};
    }
    simulator.libraries.push_back(library.string());
  }
  if (simulator.libraries.empty()) {
    return trace::Error{
        .file = list.string(),
        .offset = std::nullopt,
        .message = "names no library; vramtrace was built or installed without the simulated device"};
  }
  return simulator;
}

}  // namespace vramtrace::launch
