#include "analyzer/doctor/facts.h"

#include <fmt/format.h>

#include <array>

namespace vramtrace::doctor {
namespace {

struct RateRow {
  std::string_view key;
  std::string_view unit;
  double scale;
};
constexpr auto kRates = std::to_array<RateRow>({
#define VRAMTRACE_RATE(name, key, unit, scale) {key, unit, scale},
#include "analyzer/doctor/rates.def"
#undef VRAMTRACE_RATE
});

}  // namespace

std::string_view RateKey(Rate rate) { return kRates[static_cast<size_t>(rate)].key; }

std::optional<Rate> RateByKey(std::string_view key) {
  for (size_t i = 0; i < kRates.size(); ++i) {
    if (kRates[i].key == key) return static_cast<Rate>(i);
  }
  return std::nullopt;
}

std::string RateText(Rate rate, double value) {
  const RateRow& row = kRates[static_cast<size_t>(rate)];
  return fmt::format("{:.1f} {}", value / row.scale, row.unit);
}

Measured CardFacts::Get(Rate rate) const {
  const auto found = rates.find(rate);
  return found == rates.end() ? Measured() : found->second;
}

}  // namespace vramtrace::doctor
