#pragma once
// Whether a preload can work in a program at all, from its file: what is said when a run recorded nothing.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrace::launch {

// The file that a shell would run for `command`: itself where it has a slash, else the first executable of
// that name in `search_path` (PATH).
[[nodiscard]] std::optional<std::filesystem::path> FindCommand(const std::string& command,
                                                               std::string_view search_path);

// Why the loader would ignore LD_PRELOAD in this program, as a sentence; empty when it would not, or when the
// file does not say (a script).
[[nodiscard]] std::string WhyNotPreloadable(const std::filesystem::path& program);

}  // namespace vramtrace::launch
