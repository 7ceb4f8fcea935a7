#pragma once
// What stays on a device from step to step: weights, optimizer state; and what the optimizer's step needs
// meanwhile. Bytes follow from each parameter's shape, so small tensors that stay in FP32 and tied tables
// come out right.

#include <cstdint>
#include <span>
#include <string_view>

#include "analyzer/estimate/request.h"
#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

struct Optimizer {
  std::string_view name;
  // Bytes of state for one parameter whose state has type `dtype`.
  uint64_t (*state)(const Parameter& parameter, Dtype dtype, const Request& request);
  // Bytes that a step over these parameters takes for a while. `total`: elements, `largest`: elements of the
  // largest.
  uint64_t (*temporary)(uint64_t total, const Parameter& largest, Dtype dtype);
  std::string_view source;
};

[[nodiscard]] std::span<const Optimizer> Optimizers();
[[nodiscard]] const Optimizer* FindOptimizer(std::string_view name);

// NF4's bytes: 4 bits, an FP32 scale a block of 64, or an 8-bit one and an FP32 one for 256 of those: 4.5
// or 4.127 bits (arXiv 2305.14314, section 3; facts of bitsandbytes).
[[nodiscard]] uint64_t Nf4Bytes(uint64_t elements, bool double_quantised);

struct States {
  uint64_t weights = 0;    // on the device
  uint64_t optimizer = 0;  // and the FP32 copy of the weights
  uint64_t buckets = 0;    // DDP's second copy of the gradients
  uint64_t step_temporary = 0;
  uint64_t host = 0;                 // what was moved there
  uint64_t trainable = 0;            // parameters of the whole model
  double step_bytes_an_element = 0;  // of the temporary, for steps in the backward
};

[[nodiscard]] States StatesOf(const Tape& tape, const Request& request);

// The type of gradients, adapters excepted.
[[nodiscard]] Dtype GradientDtype(const Request& request);

}  // namespace vramtrace::estimate
