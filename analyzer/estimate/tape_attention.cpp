// Attention, fused and eager, and mixtures of experts.

#include <algorithm>

#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

// Fused kernels (FlashAttention, arXiv 2205.14135; memory-efficient; cuDNN) keep queries, keys, values, the
// output and one FP32 number a row and head; nothing grows with the square of the length. Their backward of
// 16-bit types sums the gradient of the queries in FP32, and where heads share keys it makes one gradient of
// keys and values a query head first (torch/aten/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd).
Value Tape::Attend(Value query, Value key, Value value, const Heads& heads, uint64_t query_tokens,
                   uint64_t key_tokens) {
  for (Value* part : {&query, &key, &value}) {
    if (part->dtype != ComputeDtype()) *part = Cast(*part, ComputeDtype());
  }
  if (heads.width == 0 || heads.query == 0 || too_large_) return query;
  if (options_.attention == AttentionKind::kEager || heads.softcap) {
    return EagerAttend(query, key, value, heads, query_tokens, key_tokens);
  }
  const bool needs_grad = query.requires_grad || key.requires_grad || value.requires_grad;
  const uint64_t value_width = heads.value_width == 0 ? heads.width : heads.value_width;
  const Value out = Make(query.elements / heads.width * value_width, query.dtype, needs_grad);
  const Value sums = Make(query.elements / heads.width, Dtype::kFp32, needs_grad);
  std::vector<Value> makes = {out, sums};
  // A bias is one tensor for the whole batch, with the mask in it; its gradient comes for every sequence
  // first.
  const uint64_t bias = heads.bias ? Local(heads.query) * query_tokens * key_tokens : 0;
  if (heads.bias) makes.push_back(Make(bias, query.dtype, needs_grad));
  Operation& operation = Emit({query, key, value}, makes);
  if (heads.bias) {
    Keep(operation, makes.back());
    operation.backward_temporary = Bytes(options_.batch * bias, query.dtype);
  }
  for (const Value& kept : {query, key, value, out, sums}) Keep(operation, kept);
  for (const Value& part : {query, key, value}) GradientOf(operation, part);
  if (needs_grad && query.dtype == Dtype::kBf16) {
    operation.backward_temporary += Bytes(query.elements, Dtype::kFp32);
    if (heads.key_value != heads.query)
      operation.backward_temporary += 2 * Bytes(query.elements, query.dtype);
  }
  return heads.by_head && query.dtype == Dtype::kBf16 && value_width == heads.width
             ? Combine({out}, out.elements)
             : out;
}

// transformers' eager_attention_forward: keys and values repeated to every head; scores, scaled, masked;
// softmax in FP32, cast back; times values. Kept: queries, repeated keys and values, the FP32 probabilities
// and their 16-bit copy.
Value Tape::EagerAttend(Value query, Value key, Value value, const Heads& heads, uint64_t queries,
                        uint64_t keys) {
  const uint64_t query_heads = query.elements / heads.width / (options_.batch * queries);
  const uint64_t repeated = options_.batch * keys * query_heads;
  const uint64_t value_width = heads.value_width == 0 ? heads.width : heads.value_width;
  const uint64_t score_count = options_.batch * query_heads * queries * keys;
  if (heads.key_value != heads.query) {
    key = Combine({key}, repeated * heads.width);
    value = Combine({value}, repeated * value_width);
  }
  const bool needs_grad = query.requires_grad || key.requires_grad || value.requires_grad;
  const Value products = Make(score_count, query.dtype, needs_grad);
  Operation& product = Emit({query, key}, {products});
  Keep(product, query);
  Keep(product, key);
  GradientOf(product, query);
  GradientOf(product, key);
  Value scores = products;
  if (!heads.bias) scores = Scale(scores);  // T5 does not scale, it adds a bias
  if (heads.softcap) scores = Scale(Tanh(Scale(scores)));
  // The mask, or the bias with the mask in it; its gradient is summed over the batch.
  const Value masked = Make(score_count, scores.dtype, needs_grad);
  Operation& mask = Emit({scores}, {masked});
  mask.hands_on = true;
  GradientOf(mask, scores);
  const Value fp32 = masked.dtype == Dtype::kFp32 ? masked : Cast(masked, Dtype::kFp32);
  const Value probabilities = Make(score_count, Dtype::kFp32, needs_grad);
  Operation& softmax = Emit({fp32}, {probabilities});
  Keep(softmax, probabilities);
  GradientOf(softmax, fp32);
  Value weights = probabilities.dtype == query.dtype ? probabilities : Cast(probabilities, query.dtype);
  weights = Dropout(weights, heads.dropout);
  const Value out = Make(options_.batch * query_heads * queries * value_width, query.dtype, needs_grad);
  Operation& multiply = Emit({weights, value}, {out});
  Keep(multiply, weights);
  Keep(multiply, value);
  GradientOf(multiply, weights);
  GradientOf(multiply, value);
  return Combine({out}, out.elements);  // transpose(1, 2).contiguous()
}

// transformers/integrations/moe.py, grouped_mm_experts_forward: tokens are copied once for each expert that
// was chosen for them, gate and up are one product, the weighted outputs are put back in order and summed.
// The number of rows does not depend on which experts were chosen.
Value Tape::Experts(Value input, const ExpertShape& shape) {
  const uint64_t inner = Local(shape.inner);
  const int router = AddParameter(shape.experts, shape.width, Role::kOther);
  const int gate_up =
      AddParameter(shape.experts * 2 * shape.inner, shape.width, Role::kExpert, Split::kColumn);
  const int down = AddParameter(shape.experts * shape.width, shape.inner, Role::kExpert, Split::kRow);
  if (too_large_ || shape.width == 0) return input;
  const bool trainable = parameters_[gate_up].trainable;
  const bool needs_grad = input.requires_grad || trainable;
  const uint64_t tokens = input.elements / shape.width;
  const uint64_t rows = tokens * shape.chosen;
  const bool casts = options_.autocast && options_.weights == Dtype::kFp32;

  const Value probabilities = Make(tokens * shape.experts, Dtype::kFp32, needs_grad);
  const bool copies = shape.fp32_router && input.dtype != Dtype::kFp32;
  const Value routed = copies ? Cast(input, Dtype::kFp32) : input;
  Operation& route = Emit({routed}, {probabilities});
  if (trainable) {
    Keep(route, routed);
    route.parameters.push_back(router);
  }
  Keep(route, probabilities);
  GradientOf(route, routed);

  const Value order = Make(3 * rows, Dtype::kInt64, needs_grad);
  Value gathered = Make(rows * shape.width, input.dtype, input.requires_grad);
  Operation& gather = Emit({input}, {gathered, order});
  Keep(gather, order);
  GradientOf(gather, input);
  if (gathered.dtype != ComputeDtype()) gathered = Cast(gathered, ComputeDtype());

  const auto product = [&](Value x, uint64_t width, int parameter) {
    const Value out = Make(rows * width, x.dtype, x.requires_grad || trainable);
    std::vector<Value> makes = {out};
    if (casts) makes.push_back(Make(parameters_[parameter].elements, Dtype::kBf16, false, Class::kCast));
    Operation& operation = Emit({x}, makes);
    if (trainable) {
      Keep(operation, x);
      operation.parameters.push_back(parameter);
      operation.cast_gradients = casts;
    }
    if (casts && x.requires_grad) Keep(operation, makes.back());
    if (casts && trainable) Hold(makes.back());
    if (options_.quantised) operation.forward_temporary = Bytes(parameters_[parameter].elements, x.dtype);
    if (options_.quantised && x.requires_grad) operation.backward_temporary = operation.forward_temporary;
    GradientOf(operation, x);
    return out;
  };
  const Value both = product(gathered, 2 * inner, gate_up);
  const Value gate = Act(View(both, rows * inner), Activation::kSilu);
  const Value hidden = Multiply(gate, View(both, rows * inner));
  const Value outputs = product(hidden, shape.width, down);

  const Value weighted =
      Make(outputs.elements, shape.fp32_weights ? Dtype::kFp32 : outputs.dtype, needs_grad);
  Operation& weigh = Emit({outputs, probabilities}, {weighted});
  Keep(weigh, outputs);
  GradientOf(weigh, outputs);
  const Value ordered = Make(weighted.elements, weighted.dtype, needs_grad);
  GradientOf(Emit({weighted}, {ordered}), weighted);
  const Value sum = Make(input.elements, ordered.dtype, needs_grad);
  GradientOf(Emit({ordered}, {sum}), ordered);
  return sum.dtype == input.dtype ? sum : Cast(sum, input.dtype);
}

}  // namespace vramtrace::estimate
