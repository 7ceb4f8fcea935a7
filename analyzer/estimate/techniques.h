#pragma once
// What else one could do, and what the peak would then be.

#include <span>
#include <string_view>
#include <vector>

#include "analyzer/estimate/estimate.h"

namespace vramtrace::estimate {

struct Technique {
  std::string_view name;
  std::string_view option;
  bool (*applies)(const Request& request);
  void (*apply)(Request& request);
  std::string_view source;
};

[[nodiscard]] std::span<const Technique> Techniques();

struct Change {
  const Technique* technique = nullptr;
  Estimate after;
};

// Every technique that applies and lowers the peak, alone, the greatest first. The saving is peak minus peak:
// it does not add up with that of another.
[[nodiscard]] std::vector<Change> Changes(const Model& model, const Estimate& estimate);

// What the same job needs of each of 1, 2, 4 and 8 cards (FSDP when it trains, tensor parallelism when it
// answers), or of the cards that the request names.
[[nodiscard]] std::vector<gpus::Need> Needs(const Model& model, const Estimate& estimate);

}  // namespace vramtrace::estimate
