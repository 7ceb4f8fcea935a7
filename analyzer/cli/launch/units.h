#pragma once
// What people type: sizes, durations, and commands shown back to them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vramtrace::launch {

// "20GiB", "20G", "1.5 GiB", "512M", "123456789": bytes. KiB, MiB, GiB, TiB and K, M, G, T are binary; KB,
// MB, GB, TB are decimal. Upper and lower case are the same. A fraction is rounded down to a whole byte.
// Nothing where the text is not a size, is zero or does not fit 63 bits.
[[nodiscard]] std::optional<uint64_t> ParseSize(std::string_view text);

// "90", "90s", "10m", "1h30m", "1.5h", "250ms". A plain number is seconds. Nothing where it is not positive.
[[nodiscard]] std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

// 90 s -> "1 min 30 s".
[[nodiscard]] std::string DurationText(std::chrono::milliseconds duration);

// A word as a POSIX shell reads it back: quoted only where it must be.
[[nodiscard]] std::string ShellQuote(std::string_view word);
[[nodiscard]] std::string ShellQuote(std::span<const std::string> words);

}  // namespace vramtrace::launch
