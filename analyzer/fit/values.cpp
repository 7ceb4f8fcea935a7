#include "analyzer/fit/values.h"

#include <algorithm>
#include <numeric>

namespace vramtrace::fit {

void Values::Accept(uint64_t value) {
  accepted_.insert(value);
  Learn();
}

void Values::Reject(uint64_t value) {
  rejected_.insert(value);
  Learn();
}

void Values::Learn() {
  step_ = 1;
  bounded_ = false;
  low_ = from_;
  high_ = to_;
  if (rejected_.empty() || accepted_.empty()) return;
  const uint64_t most = common();
  for (uint64_t step = 2; step <= most; ++step) {
    if (most % step != 0) continue;
    const bool explains =
        std::none_of(rejected_.begin(), rejected_.end(), [&](uint64_t value) { return value % step == 0; });
    if (explains) {
      step_ = step;
      return;
    }
  }
  // Not multiples then: bounds. A rejected value between accepted ones is simply not tried again.
  for (const uint64_t value : rejected_) {
    if (value < *accepted_.begin()) low_ = std::max(low_, value + 1);
    if (value < *accepted_.rbegin()) continue;
    high_ = std::min(high_, value - 1);
    bounded_ = true;
  }
}

uint64_t Values::common() const {
  uint64_t common = 0;
  for (const uint64_t value : accepted_) common = std::gcd(common, value);
  return std::max<uint64_t>(common, 1);
}

std::optional<uint64_t> Values::AtOrBelow(uint64_t value) const {
  value = std::min(value, high_) / step_ * step_;
  while (value >= low_ && rejected_.contains(value)) value -= std::min(value, step_);
  if (value < std::max<uint64_t>(low_, 1)) return std::nullopt;
  return value;
}

std::optional<uint64_t> Values::AtOrAbove(uint64_t value) const {
  value = std::max(value, low_);
  value = (value + step_ - 1) / step_ * step_;
  while (value <= high_ && rejected_.contains(value)) value += step_;
  if (value > high_) return std::nullopt;
  return value;
}

}  // namespace vramtrace::fit
