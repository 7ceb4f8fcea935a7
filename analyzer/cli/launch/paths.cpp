#include "analyzer/cli/launch/paths.h"

#include <algorithm>

namespace vramtrace::launch {

bool IsInside(const std::filesystem::path& path, const std::filesystem::path& folder) {
  auto end = folder.end();
  if (folder.begin() != end && std::prev(end)->empty()) --end;  // a trailing slash
  return std::mismatch(folder.begin(), end, path.begin(), path.end()).first == end;
}

}  // namespace vramtrace::launch
