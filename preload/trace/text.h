#pragma once
// Making any bytes into text that a proto3 string may hold.

#include <cstddef>
#include <span>
#include <string_view>

namespace vramtrace::trace {

// The longest prefix of `bytes` that is valid UTF-8 (RFC 3629: no overlong forms, no surrogates, at most
// U+10FFFF).
[[nodiscard]] size_t ValidUtf8Prefix(std::string_view bytes) noexcept;

// Copies into `room`: invalid bytes become U+FFFD, the text ends at a character boundary. `*cut` tells that
// the input did not fit.
[[nodiscard]] std::string_view CleanText(std::string_view bytes, std::span<char> room, bool* cut) noexcept;

}  // namespace vramtrace::trace
