#pragma once
// What the search asks of a forecast.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "analyzer/fit/runner.h"
#include "analyzer/forecast/bands.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::fit {

struct Target {
  const catalogue::Gpu* gpu = nullptr;
  Bytes total = 0;
  std::string total_basis;  // measured, given with --total
};

// A completed run of one value.
struct Recording {
  uint64_t value = 0;
  RunResult run;
};

struct Forecast {
  Bytes allocated = 0;  // peaks on a card without a limit
  Bytes reserved = 0;
  Bytes elsewhere = 0;  // context and the like
  forecast::Judgement judgement;
};

class Forecaster {
 public:
  virtual ~Forecaster() = default;

  // Takes two runs of different values; `smaller` has the smaller one. The string says why they do not make a
  // forecast; empty: they do.
  [[nodiscard]] virtual std::string Learn(const Recording& smaller, const Recording& larger) = 0;
  // What the forecast rests on and what weakens it: one clause.
  [[nodiscard]] virtual std::string Basis() const = 0;
  // False when nothing that the program asks for depends on the value.
  [[nodiscard]] virtual bool FollowsValue() const = 0;
  // Whether the run goes through on the card, without a band.
  [[nodiscard]] virtual bool Fits(uint64_t value, const Target& target) = 0;
  [[nodiscard]] virtual Forecast At(uint64_t value, const Target& target) = 0;
};

}  // namespace vramtrace::fit
