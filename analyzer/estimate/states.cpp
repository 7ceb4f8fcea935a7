#include "analyzer/estimate/states.h"

#include <algorithm>

namespace vramtrace::estimate {
namespace {

constexpr uint64_t kSmall = 4096;  // bitsandbytes' min_8bit_size, torchao's too

uint64_t Elements(uint64_t count, Dtype dtype) { return count * SizeOf(dtype); }

uint64_t NoState(const Parameter&, Dtype, const Request&) { return 0; }

uint64_t OneMoment(const Parameter& parameter, Dtype dtype, const Request&) {
  return Elements(parameter.elements, dtype);
}

uint64_t TwoMoments(const Parameter& parameter, Dtype dtype, const Request&) {
  return 2 * Elements(parameter.elements, dtype);
}

uint64_t TwoMoments8(const Parameter& parameter, Dtype, const Request&) {
  if (parameter.elements < kSmall) return 2 * Elements(parameter.elements, Dtype::kFp32);
  constexpr uint64_t kBlock = 256;
  return 2 * (parameter.elements + 4 * ((parameter.elements + kBlock - 1) / kBlock));
}

// Only tensors of 100,000 elements and more are paged (bitsandbytes/optim/optimizer.py).
uint64_t PagedMoments8(const Parameter& parameter, Dtype dtype, const Request& request) {
  return parameter.elements >= 100'000 ? 0 : TwoMoments8(parameter, dtype, request);
}

uint64_t TwoMoments4(const Parameter& parameter, Dtype dtype, const Request&) {
  if (parameter.elements < kSmall) return 2 * Elements(parameter.elements, dtype);
  constexpr uint64_t kBlock = 128;
  return parameter.elements + 8 * ((parameter.elements + kBlock - 1) / kBlock);
}

uint64_t RowsAndColumns(const Parameter& parameter, Dtype, const Request&) {
  if (parameter.columns <= 1) return Elements(parameter.elements, Dtype::kFp32);
  return Elements(parameter.rows + parameter.columns, Dtype::kFp32);
}

bool IsHiddenMatrix(const Parameter& parameter) {
  return parameter.columns > 1 && parameter.role != Role::kEmbedding && parameter.role != Role::kHead;
}

uint64_t MuonMoments(const Parameter& parameter, Dtype dtype, const Request& request) {
  return IsHiddenMatrix(parameter) ? OneMoment(parameter, dtype, request)
                                   : TwoMoments(parameter, dtype, request);
}

uint64_t LowRankElements(const Parameter& parameter, uint64_t rank, uint64_t moments_bytes_halves) {
  const uint64_t small = std::min(parameter.rows, parameter.columns);
  const uint64_t large = std::max(parameter.rows, parameter.columns);
  const uint64_t r = std::min(rank, small);
  return small * r * 2 + large * r * moments_bytes_halves;
}

uint64_t LowRankMoments(const Parameter& parameter, Dtype dtype, const Request& request) {
  if (!IsHiddenMatrix(parameter)) return TwoMoments(parameter, dtype, request);
  // The projection has the gradient's type, the two moments too.
  return LowRankElements(parameter, request.galore_rank, 4) * SizeOf(dtype) / 2;
}

uint64_t LowRankMoments8(const Parameter& parameter, Dtype dtype, const Request& request) {
  if (!IsHiddenMatrix(parameter)) return TwoMoments8(parameter, dtype, request);
  const uint64_t small = std::min(parameter.rows, parameter.columns);
  const uint64_t large = std::max(parameter.rows, parameter.columns);
  const uint64_t r = std::min(request.galore_rank, small);
  Parameter low = parameter;
  low.elements = large * r;
  return Elements(small * r, dtype) + TwoMoments8(low, dtype, request);
}

uint64_t Nothing(uint64_t, const Parameter&, Dtype) { return 0; }
uint64_t OneList(uint64_t total, const Parameter&, Dtype dtype) { return Elements(total, dtype); }
uint64_t Largest(uint64_t, const Parameter& largest, Dtype) {
  return Elements(largest.elements, Dtype::kFp32);
}
uint64_t LargestTwice(uint64_t total, const Parameter& largest, Dtype dtype) {
  return 2 * Largest(total, largest, dtype);
}
// About five BF16 copies of the matrix, and two of its smaller square [ours, derived from
// zeropower_via_newtonschulz5].
uint64_t NewtonSchulz(uint64_t, const Parameter& largest, Dtype) {
  const uint64_t small = std::min(largest.rows, largest.columns);
  return Elements(5 * largest.elements + 2 * small * small, Dtype::kBf16);
}

constexpr Optimizer kOptimizers[] = {
#define VRAMTRACE_OPTIMIZER(name, state, temporary, source) {name, state, temporary, source},
#include "analyzer/estimate/optimizers.def"
#undef VRAMTRACE_OPTIMIZER
};

bool IsQuantised(const Parameter& parameter, const Request& request) {
  return request.method == Method::kQlora && !parameter.adapter && parameter.columns > 1 &&
         (parameter.role == Role::kLinear || parameter.role == Role::kExpert);
}

uint64_t WeightBytes(const Parameter& parameter, const Tape& tape, const Request& request) {
  if (parameter.adapter) return Elements(parameter.elements, tape.options().adapters);
  if (IsQuantised(parameter, request)) return Nf4Bytes(parameter.elements, request.double_quantised);
  if (request.method == Method::kQlora && request.rest_in_fp32)
    return Elements(parameter.elements, Dtype::kFp32);
  return Elements(parameter.elements, tape.options().weights);
}

uint64_t Part(uint64_t bytes, uint64_t ways) { return (bytes + ways - 1) / ways; }

}  // namespace

std::span<const Optimizer> Optimizers() { return kOptimizers; }

const Optimizer* FindOptimizer(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                   [&](const Optimizer& row) { return row.name == name; });
  return found == std::end(kOptimizers) ? nullptr : found;
}

uint64_t Nf4Bytes(uint64_t elements, bool double_quantised) {
  const uint64_t blocks = (elements + 63) / 64;
  const uint64_t scales = double_quantised ? blocks + 4 * ((blocks + 255) / 256) : 4 * blocks;
  return (elements + 1) / 2 + scales;
}

Dtype GradientDtype(const Request& request) {
  return request.precision == Precision::kAutocast ? Dtype::kFp32 : request.weights;
}

States StatesOf(const Tape& tape, const Request& request) {
  States states;
  const Optimizer* optimizer = request.Trains() ? FindOptimizer(request.optimizer) : nullptr;
  const uint64_t ways = request.data_parallel;
  const uint64_t weight_ways = request.shard == Shard::kParameters ? ways : 1;
  const uint64_t state_ways = request.shard == Shard::kNothing ? 1 : ways;
  const bool master = request.precision == Precision::kMaster;
  uint64_t gradients = 0;
  uint64_t trained_elements = 0;
  Parameter largest;
  for (const Parameter& parameter : tape.parameters()) {
    const uint64_t bytes = Part(WeightBytes(parameter, tape, request), weight_ways);
    (request.parameters_on_host ? states.host : states.weights) += bytes;
    if (!parameter.trainable || optimizer == nullptr) continue;
    states.trainable += parameter.whole;
    trained_elements += Part(parameter.elements, state_ways);
    if (parameter.elements > largest.elements) largest = parameter;
    const Dtype own = parameter.adapter ? tape.options().adapters : GradientDtype(request);
    gradients += Elements(parameter.elements, own);
    const Dtype state_dtype = master && !parameter.adapter ? Dtype::kFp32 : own;
    uint64_t state = optimizer->state(parameter, state_dtype, request);
    if (master && !parameter.adapter) state += Elements(parameter.elements, Dtype::kFp32);
    state = Part(state, state_ways);
    (request.optimizer_on_host || request.parameters_on_host ? states.host : states.optimizer) += state;
  }
  if (optimizer == nullptr) return states;
  if (request.data_parallel > 1 && request.shard == Shard::kNothing && !request.bucket_views) {
    states.buckets = gradients;
  }
  const Dtype state_dtype = request.Adapts() ? tape.options().adapters
                            : master         ? Dtype::kFp32
                                             : GradientDtype(request);
  if (!request.optimizer_on_host && !request.parameters_on_host && optimizer->temporary != Nothing) {
    const bool listed = optimizer->temporary == OneList;
    if (request.step_in_backward) {
      states.step_bytes_an_element = static_cast<double>(SizeOf(state_dtype));
    } else if (!listed || request.foreach) {
      largest.elements = Part(largest.elements, state_ways);
      states.step_temporary = optimizer->temporary(trained_elements, largest, state_dtype);
    } else {
      states.step_temporary = Elements(largest.elements, state_dtype);
    }
  }
  return states;
}

}  // namespace vramtrace::estimate
