#include "analyzer/cli/launch/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>

namespace vramtrace::launch {
namespace {

struct Decimal {
  uint64_t whole = 0;
  uint64_t fraction = 0;        // digits after the point
  uint64_t fraction_scale = 1;  // 10 ^ number of those digits
};

// Takes digits and at most one point off the front of `text`.
std::optional<Decimal> TakeDecimal(std::string_view& text) {
  Decimal number;
  bool any = false;
  bool after_point = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && !after_point) {
      after_point = true;
    } else if (c >= '0' && c <= '9') {
      const auto digit = static_cast<uint64_t>(c - '0');
      any = true;
      if (!after_point) {
        if (number.whole > (std::numeric_limits<int64_t>::max() - digit) / 10) return std::nullopt;
        number.whole = number.whole * 10 + digit;
      } else if (number.fraction_scale < 1'000'000'000) {  // more digits say nothing
        number.fraction = number.fraction * 10 + digit;
        number.fraction_scale *= 10;
      }
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  if (!any) return std::nullopt;
  return number;
}

void SkipSpaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::optional<uint64_t> Scale(const Decimal& number, uint64_t unit) {
  const auto product = static_cast<unsigned __int128>(number.whole) * unit +
                       static_cast<unsigned __int128>(number.fraction) * unit / number.fraction_scale;
  if (product == 0 || product > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<uint64_t>(product);
}

struct Unit {
  std::string_view name;
  uint64_t value;
};

constexpr std::array kSizeUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", 1ULL << 10},
    Unit{"kib", 1ULL << 10},
    Unit{"kb", 1000},
    Unit{"m", 1ULL << 20},
    Unit{"mib", 1ULL << 20},
    Unit{"mb", 1000 * 1000},
    Unit{"g", 1ULL << 30},
    Unit{"gib", 1ULL << 30},
    Unit{"gb", 1000ULL * 1000 * 1000},
    Unit{"t", 1ULL << 40},
    Unit{"tib", 1ULL << 40},
    Unit{"tb", 1000ULL * 1000 * 1000 * 1000},
};

constexpr std::array kTimeUnits = {
    // in milliseconds
    Unit{"ms", 1},     Unit{"s", 1000},     Unit{"sec", 1000},    Unit{"", 1000},
    Unit{"m", 60'000}, Unit{"min", 60'000}, Unit{"h", 3'600'000}, Unit{"d", 86'400'000},
};

template <size_t N>
const Unit* FindUnit(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

std::optional<uint64_t> ParseSize(std::string_view text) {
  SkipSpaces(text);
  const auto number = TakeDecimal(text);
  if (!number) return std::nullopt;
  SkipSpaces(text);
  const Unit* unit = FindUnit(kSizeUnits, Lower(text));
  return unit == nullptr ? std::nullopt : Scale(*number, unit->value);
}

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  uint64_t total = 0;
  SkipSpaces(text);
  do {
    const auto number = TakeDecimal(text);
    if (!number) return std::nullopt;
    SkipSpaces(text);
    size_t length = 0;
    while (length < text.size() && std::isalpha(static_cast<unsigned char>(text[length])) != 0) ++length;
    const Unit* unit = FindUnit(kTimeUnits, Lower(text.substr(0, length)));
    if (unit == nullptr || (length == 0 && !text.empty())) return std::nullopt;
    const auto part = Scale(*number, unit->value);
    // A hundred years: an upper bound that no sum below can overflow.
    if (!part || *part > 3'155'760'000'000) return std::nullopt;
    total += *part;
    text.remove_prefix(length);
    SkipSpaces(text);
  } while (!text.empty());
  return std::chrono::milliseconds(total);
}

std::string DurationText(std::chrono::milliseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (seconds == 0) return fmt::format("{} ms", duration.count());
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) {
    return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60)
                             : fmt::format("{} min {} s", seconds / 60, seconds % 60);
  }
  const auto minutes = seconds % 3600 / 60;
  return minutes == 0 ? fmt::format("{} h", seconds / 3600)
                      : fmt::format("{} h {} min", seconds / 3600, minutes);
}

std::string ShellQuote(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted += "'";
}

std::string ShellQuote(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellQuote(word);
  }
  return line;
}

}  // namespace vramtrace::launch
