#include "analyzer/report/units.h"

#include <fmt/format.h>

namespace vramtrace::report {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = kKiB * 1024;
constexpr double kGiB = kMiB * 1024;

uint64_t Magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace

std::string Size(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  // What would round to 1024 of a unit is written in the next one.
  if (value >= kGiB - kMiB / 20) return fmt::format("{:.2f} GiB", value / kGiB);
  if (value >= kMiB - kKiB / 20) return fmt::format("{:.1f} MiB", value / kMiB);
  if (value >= kKiB) return fmt::format("{:.1f} KiB", value / kKiB);
  return fmt::format("{} B", bytes);
}

std::string SignedSize(int64_t bytes) { return (bytes < 0 ? "-" : "") + Size(Magnitude(bytes)); }

std::string Grouped(uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string SignedGrouped(int64_t value) { return (value < 0 ? "-" : "") + Grouped(Magnitude(value)); }

std::string Count(uint64_t count, std::string_view singular) {
  return fmt::format("{} {}{}", Grouped(count), singular, count == 1 ? "" : "s");
}

std::string Share(double part, double whole) {
  return whole <= 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

}  // namespace vramtrace::report
