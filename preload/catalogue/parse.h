#pragma once
// Fields of the catalogue's files as numbers. The files are compiled in and tested row by row, so a field
// that does not parse is a number missing, never an error at run time.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrace::catalogue {

inline constexpr uint64_t kMebibyte = 1u << 20;

inline double ToDouble(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }
inline int ToInt(std::string_view text) {
  return static_cast<int>(std::strtol(std::string(text).c_str(), nullptr, 10));
}
inline std::optional<uint64_t> ToBytes(std::string_view text, uint64_t unit) {
  if (text.empty()) return std::nullopt;
  return std::strtoull(std::string(text).c_str(), nullptr, 10) * unit;
}

struct ComputeCapability {
  int major = 0;
  int minor = 0;
  bool operator==(const ComputeCapability&) const = default;
};
inline ComputeCapability ToCapability(std::string_view text) {
  size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {ToInt(text), 0};
  return {ToInt(text.substr(0, dot)), ToInt(text.substr(dot + 1))};
}

}  // namespace vramtrace::catalogue
