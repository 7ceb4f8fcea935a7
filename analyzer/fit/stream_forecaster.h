#pragma once
// The real forecast: two traces, the laws of their sizes, the allocator's rules.

#include <memory>
#include <vector>

#include "analyzer/fit/forecaster.h"
#include "analyzer/forecast/planner.h"

namespace vramtrace::fit {

class StreamForecaster final : public Forecaster {
 public:
  [[nodiscard]] std::string Learn(const Recording& smaller, const Recording& larger) override;
  [[nodiscard]] std::string Basis() const override;
  [[nodiscard]] bool FollowsValue() const override;
  [[nodiscard]] bool Fits(uint64_t value, const Target& target) override;
  [[nodiscard]] Forecast At(uint64_t value, const Target& target) override;

 private:
  [[nodiscard]] const forecast::Stream& NearestTo(uint64_t value) const;
  [[nodiscard]] forecast::Card CardOf(const Target& target) const;

  std::vector<forecast::Stream> streams_;  // the smaller value first
  std::shared_ptr<forecast::Planner> planner_;
  forecast::ReplayOptions options_;
};

// Where a trace cannot be forecast from (no caching allocator): device used on a straight line through two
// peaks.
class PeakForecaster final : public Forecaster {
 public:
  [[nodiscard]] std::string Learn(const Recording& smaller, const Recording& larger) override;
  [[nodiscard]] std::string Basis() const override;
  [[nodiscard]] bool FollowsValue() const override { return slope_ != 0; }
  [[nodiscard]] bool Fits(uint64_t value, const Target& target) override;
  [[nodiscard]] Forecast At(uint64_t value, const Target& target) override;

 private:
  [[nodiscard]] Bytes Beyond(uint64_t value) const;  // device used beyond the context

  double fixed_ = 0;
  double slope_ = 0;
};

}  // namespace vramtrace::fit
