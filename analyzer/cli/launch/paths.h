#pragma once
// Paths, as the wrappers compare them.

#include <filesystem>

namespace vramtrace::launch {

// True for `folder` itself and everything below it. Both absolute and without links.
[[nodiscard]] bool IsInside(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace vramtrace::launch
