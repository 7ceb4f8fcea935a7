#include "analyzer/gpus/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace vramtrace::gpus {

std::optional<double> RateOf(const catalogue::Gpu& gpu, Arithmetic arithmetic) {
  const double rate = arithmetic == Arithmetic::kBf16 ? gpu.bf16_tflops : gpu.fp32_tflops;
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

std::optional<Range> TimeRatio(const catalogue::Gpu& gpu, const catalogue::Gpu& reference,
                               Arithmetic arithmetic, std::string* why) {
  constexpr double kSlack = 1.2;
  if (&gpu == &reference) return Range{1, 1, 1};
  for (const catalogue::Gpu* card : {&gpu, &reference}) {
    if (RateOf(*card, arithmetic) && card->bandwidth_gb_per_s > 0) continue;
    if (why != nullptr)
      *why = fmt::format("the catalogue has no matrix rate of {} for this precision", card->id);
    return std::nullopt;
  }
  const double compute = *RateOf(reference, arithmetic) / *RateOf(gpu, arithmetic);
  const double memory = reference.bandwidth_gb_per_s / gpu.bandwidth_gb_per_s;
  return Range{std::min(compute, memory) / kSlack, std::sqrt(compute * memory),
               std::max(compute, memory) * kSlack};
}

std::optional<Range> HoursForWork(const catalogue::Gpu& gpu, double flops, Arithmetic arithmetic,
                                  std::string* why) {
  const std::optional<double> rate = RateOf(gpu, arithmetic);
  if (!rate) {
    if (why != nullptr)
      *why = fmt::format("the catalogue has no matrix rate of {} for this precision", gpu.id);
    return std::nullopt;
  }
  const double at_full_rate = flops / (*rate * 1e12) / 3600;
  return Range{at_full_rate / 0.55, at_full_rate / 0.38, at_full_rate / 0.20};
}

Range SpeedUp(const catalogue::Gpu& gpu, int cards) {
  if (cards <= 1) return {1, 1, 1};
  const bool fast_link = gpu.gpu_link.starts_with("NVLink") && !gpu.gpu_link.starts_with("NVLink bridge");
  const double low = fast_link ? 2.0 / 3 : 0.5;
  constexpr double kHigh = 0.97;
  return {cards * low, cards * (low + kHigh) / 2, cards * kHigh};
}

}  // namespace vramtrace::gpus
