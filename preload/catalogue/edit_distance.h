#pragma once
// How far a mistyped name is from a known one.

#include <cstddef>
#include <string_view>

namespace vramtrace::catalogue {

// Letters to insert, remove or replace to make one of the other (Levenshtein).
[[nodiscard]] size_t EditDistance(std::string_view left, std::string_view right);

}  // namespace vramtrace::catalogue
