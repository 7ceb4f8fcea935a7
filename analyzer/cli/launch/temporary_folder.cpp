#include "analyzer/cli/launch/temporary_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace vramtrace::launch {
namespace fs = std::filesystem;

std::unique_ptr<TemporaryFolder> TemporaryFolder::Create(std::string* why) {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);  // TMPDIR, else /tmp
  std::string name =
      ((error ? fs::path("/tmp") : base) / fmt::format("vramtrace-{}-XXXXXX", getpid())).string();
  if (mkdtemp(name.data()) == nullptr) {
    *why = fmt::format("{}: {}", name, std::strerror(errno));
    return nullptr;
  }
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(name));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace vramtrace::launch
