#include "analyzer/estimate/tape.h"

#include <algorithm>

namespace vramtrace::estimate {
namespace {

// A tensor above this is no tensor: 16 TiB. Sums over any tape then stay far below 2^63.
constexpr uint64_t kLargestTensor = uint64_t{1} << 44;

}  // namespace

uint64_t SizeOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp32:
      return 4;
    case Dtype::kBf16:
      return 2;
    case Dtype::kInt64:
      return 8;
    case Dtype::kInt8:
    case Dtype::kNf4:
    case Dtype::kBool:
      break;
  }
  return 1;
}

const char* ClassName(Class kind) {
  constexpr const char* kNames[] = {"weights",      "gradients",       "optimizer state",
                                    "activations",  "logits and loss", "temporaries",
                                    "weight casts", "KV cache",        "gathered and buckets"};
  static_assert(std::size(kNames) == static_cast<size_t>(Class::kCount));
  return kNames[static_cast<size_t>(kind)];
}

uint64_t Tape::Bytes(uint64_t elements, Dtype dtype) {
  if (elements <= kLargestTensor / SizeOf(dtype)) return elements * SizeOf(dtype);
  too_large_ = true;
  return 0;
}

uint64_t Tape::ParameterCount() const {
  uint64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.adapter ? 0 : parameter.whole;
  return count;
}

uint64_t Tape::AdapterCount() const {
  uint64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.adapter ? parameter.whole : 0;
  return count;
}

uint64_t Tape::Local(uint64_t width) const {
  return (width + options_.tensor_parallel - 1) / options_.tensor_parallel;
}

int Tape::AddParameter(uint64_t rows, uint64_t columns, Role role, Split split) {
  Parameter parameter;
  parameter.rows = split == Split::kColumn ? Local(rows) : rows;
  parameter.columns = split == Split::kRow ? Local(columns) : columns;
  if (columns > kLargestTensor || rows > kLargestTensor / std::max<uint64_t>(columns, 1)) too_large_ = true;
  if (too_large_) return 0;
  parameter.elements = parameter.rows * parameter.columns;
  parameter.whole = rows * columns;
  parameter.role = role;
  parameter.block = block_;
  parameter.trainable = options_.training && !options_.base_frozen;
  parameters_.push_back(parameter);
  return static_cast<int>(parameters_.size()) - 1;
}

Value Tape::Make(uint64_t elements, Dtype dtype, bool requires_grad, Class kind) {
  storages_.push_back({Bytes(elements, dtype), kind, static_cast<int>(operations_.size())});
  return {static_cast<int>(storages_.size()) - 1, elements, dtype, requires_grad && options_.training};
}

Operation& Tape::Emit(const std::vector<Value>& reads, const std::vector<Value>& makes) {
  const int index = static_cast<int>(operations_.size());
  Operation& operation = operations_.emplace_back();
  for (const Value& value : reads) {
    operation.reads.push_back(value.storage);
    storages_[value.storage].last_use = index;
  }
  for (const Value& value : makes) {
    operation.makes.push_back(value.storage);
    storages_[value.storage].last_use = index;
    operation.has_backward |= value.requires_grad;
  }
  return operation;
}

void Tape::Keep(Operation& operation, const Value& value) {
  if (operation.has_backward) operation.keeps.push_back(value.storage);
}

void Tape::GradientOf(Operation& operation, const Value& value) {
  if (value.requires_grad) operation.gradients_of.push_back(value.storage);
}

void Tape::BeginBlock(Value input) {
  blocks_.push_back({static_cast<int>(operations_.size()), 0, input.storage});
  block_ = static_cast<int>(blocks_.size()) - 1;
}

void Tape::EndBlock() {
  Block& block = blocks_.back();
  block.last = static_cast<int>(operations_.size()) - 1;
  // The caller's frame holds the input until the layer returns.
  if (block.input >= 0)
    storages_[block.input].last_use = std::max(storages_[block.input].last_use, block.last);
  block_ = -1;
}

Value Tape::Input(uint64_t elements, Dtype dtype) {
  const Value value = Make(elements, dtype, false);
  Emit({}, {value});
  Hold(value);
  return value;
}

Value Tape::Received(uint64_t width) {
  const uint64_t ways = options_.sequence_parallel ? options_.tensor_parallel : 1;
  const Value value = Make((Tokens() + ways - 1) / ways * width, ComputeDtype(), true);
  Emit({}, {value});
  return value;
}

Value Tape::Embedding(uint64_t rows, uint64_t width, Value ids, int* parameter) {
  const int table = AddParameter(rows, width, Role::kEmbedding, Split::kColumn);
  if (parameter != nullptr) *parameter = table;
  if (too_large_) return ids;
  const bool trainable = parameters_[table].trainable;
  const uint64_t ways = options_.sequence_parallel ? options_.tensor_parallel : 1;
  const uint64_t positions = (ids.elements + ways - 1) / ways;
  const Value out = Make(positions * width, options_.weights, trainable || options_.inputs_require_grad);
  Operation& operation = Emit({ids}, {out});
  if (trainable) {
    Keep(operation, ids);
    operation.parameters.push_back(table);
  }
  return out;
}

Value Tape::PositionEmbedding(uint64_t rows, uint64_t width, Value onto) {
  const int table = AddParameter(rows, width, Role::kEmbedding);
  if (too_large_) return onto;
  const Value out = Make(onto.elements, onto.dtype, onto.requires_grad || parameters_[table].trainable);
  Operation& operation = Emit({onto}, {out});
  operation.hands_on = true;
  GradientOf(operation, onto);
  if (parameters_[table].trainable) operation.parameters.push_back(table);
  return out;
}

bool Tape::Adapted(LinearShape::Place place) const {
  if (options_.rank == 0) return false;
  using Place = LinearShape::Place;
  switch (place) {
    case Place::kQuery:
    case Place::kValue:
      return options_.adapt_attention || options_.adapt_query_value_only;
    case Place::kKey:
    case Place::kAttention:
      return options_.adapt_attention && !options_.adapt_query_value_only;
    case Place::kMlp:
      return options_.adapt_mlp && !options_.adapt_query_value_only;
    case Place::kOther:
      break;
  }
  return false;
}

Value Tape::Linear(Value input, const LinearShape& shape) {
  const uint64_t in = shape.split == Split::kRow ? Local(shape.in) : shape.in;
  const uint64_t out_width = shape.split == Split::kColumn ? Local(shape.out) : shape.out;
  if (in == 0 || too_large_) return input;
  const int weight =
      shape.tied_to >= 0 ? shape.tied_to : AddParameter(shape.out, shape.in, shape.role, shape.split);
  const int bias = shape.bias ? AddParameter(shape.out, 1, Role::kOther,
                                             shape.split == Split::kColumn ? shape.split : Split::kNone)
                              : -1;
  if (too_large_) return input;
  const bool trainable = parameters_[weight].trainable;
  const Value x = input.dtype == ComputeDtype() ? input : Cast(input, ComputeDtype());
  // Sequence parallelism (arXiv 2205.05198): outside of split layers each device has its part of the
  // positions; a column layer gathers them for its product and keeps its own, a row layer scatters its sums.
  const bool sequence = options_.sequence_parallel && options_.tensor_parallel > 1;
  const uint64_t ways = options_.tensor_parallel;
  const bool gathers = sequence && shape.split == Split::kColumn;
  const uint64_t rows = gathers ? x.elements * ways / in : x.elements / in;
  const uint64_t out_rows = sequence && shape.split == Split::kRow ? (rows + ways - 1) / ways : rows;
  const bool needs_grad = x.requires_grad || trainable;
  const Class kind = shape.role == Role::kHead ? Class::kLogits : Class::kActivation;
  const Value out = Make(out_rows * out_width, x.dtype, needs_grad, kind);

  std::vector<Value> makes = {out};
  const bool casts_weight = options_.autocast && options_.weights == Dtype::kFp32;
  Value cast;
  if (casts_weight) {
    cast = Make(in * out_width, Dtype::kBf16, false, Class::kCast);
    makes.push_back(cast);
  }
  Operation& operation = Emit({x}, makes);
  if (trainable) Keep(operation, x);
  if (casts_weight && x.requires_grad) Keep(operation, cast);
  if (options_.quantised && (shape.role == Role::kLinear || shape.role == Role::kExpert)) {
    operation.forward_temporary = Bytes(in * out_width, x.dtype);
    if (x.requires_grad) operation.backward_temporary = operation.forward_temporary;
  }
  if (gathers) {
    operation.forward_temporary += Bytes(rows * in, x.dtype);
    operation.backward_temporary += Bytes(rows * in, x.dtype);
  }
  GradientOf(operation, x);
  if (trainable) {
    operation.parameters.push_back(weight);
    if (bias >= 0) operation.parameters.push_back(bias);
    operation.cast_gradients = casts_weight;
  }
  // autocast keeps the copies of weights that require a gradient until its region ends.
  if (casts_weight && trainable) Hold(cast);
  return Adapted(shape.place) ? Adapt(input, out, shape) : out;
}

// peft/tuners/lora/layer.py: result + lora_B(lora_A(dropout(x.to(A.dtype)))) * scaling, then back to the
// result's dtype.
Value Tape::Adapt(Value input, Value base, const LinearShape& shape) {
  const uint64_t in = shape.split == Split::kRow ? Local(shape.in) : shape.in;
  const uint64_t out = shape.split == Split::kColumn ? Local(shape.out) : shape.out;
  const auto matrix = [&](Value x, uint64_t x_width, uint64_t width) {
    const int parameter = AddParameter(width, x_width, Role::kOther);
    if (too_large_) return x;
    parameters_[parameter].trainable = options_.training;
    parameters_[parameter].adapter = true;
    const Value made = Make(x.elements / x_width * width, x.dtype, true);
    Operation& operation = Emit({x}, {made});
    Keep(operation, x);
    GradientOf(operation, x);
    operation.parameters.push_back(parameter);
    return made;
  };
  const Dtype dtype = options_.autocast ? Dtype::kBf16 : options_.adapters;
  Value x = input.dtype == dtype ? input : Cast(input, dtype);
  x = Dropout(x, options_.adapter_dropout);
  const Value low = matrix(x, in, options_.rank);
  const Value high = matrix(low, options_.rank, out);
  const Value sum = Add(base, Scale(high));
  return sum.dtype == base.dtype ? sum : Cast(sum, base.dtype);
}

Value Tape::Cast(Value input, Dtype dtype) {
  const Value out = Make(input.elements, dtype, input.requires_grad, storages_[input.storage].kind);
  GradientOf(Emit({input}, {out}), input);
  return out;
}

Value Tape::RmsNorm(Value input, uint64_t width, bool one_plus) {
  const int weight = AddParameter(width, 1, Role::kNorm);
  if (too_large_ || width == 0) return input;
  const bool trainable = parameters_[weight].trainable;
  const Dtype dtype = input.dtype;
  const Value x = dtype == Dtype::kFp32 ? input : Cast(input, Dtype::kFp32);
  // pow, mean and rsqrt: x and one number a row are kept.
  const Value scale = Make(x.elements / width, Dtype::kFp32, x.requires_grad);
  const Value normal = Make(x.elements, Dtype::kFp32, x.requires_grad);
  Operation& norm = Emit({x}, {scale, normal});
  Keep(norm, x);
  Keep(norm, scale);
  GradientOf(norm, x);
  norm.backward_temporary = x.requires_grad ? 2 * Bytes(x.elements, Dtype::kFp32) : 0;
  const Value scaled = one_plus || dtype == Dtype::kFp32 ? normal : Cast(normal, dtype);
  const Value out = Make(scaled.elements, scaled.dtype, scaled.requires_grad || trainable);
  Operation& multiply = Emit({scaled}, {out});
  if (trainable) {
    Keep(multiply, scaled);
    multiply.parameters.push_back(weight);
    // The gradient of the weight is a sum over rows of a product as large as the input.
    multiply.backward_temporary = storages_[scaled.storage].bytes;
  }
  GradientOf(multiply, scaled);
  return out.dtype == dtype ? out : Cast(out, dtype);
}

Value Tape::LayerNorm(Value input, uint64_t width, bool bias) {
  const int weight = AddParameter(width, 1, Role::kNorm);
  const int offset = bias ? AddParameter(width, 1, Role::kNorm) : -1;
  if (too_large_ || width == 0) return input;
  const bool trainable = parameters_[weight].trainable;
  // autocast runs it in FP32.
  const Value x = options_.autocast && input.dtype != Dtype::kFp32 ? Cast(input, Dtype::kFp32) : input;
  const bool needs_grad = x.requires_grad || trainable;
  const Value statistics = Make(2 * (x.elements / width), Dtype::kFp32, needs_grad);
  const Value out = Make(x.elements, x.dtype, needs_grad);
  Operation& operation = Emit({x}, {statistics, out});
  Keep(operation, x);
  Keep(operation, statistics);
  GradientOf(operation, x);
  if (trainable) {
    operation.parameters.push_back(weight);
    if (offset >= 0) operation.parameters.push_back(offset);
  }
  return out;
}

// x * cos + rotate_half(x) * sin: cos and sin are kept, which are shared by all layers; x is not. Under
// autocast cos and sin have the dtype of the hidden states, which is FP32.
Value Tape::Rotary(Value input) {
  const Dtype dtype = options_.autocast ? Dtype::kFp32 : input.dtype;
  const Value out = Make(input.elements, dtype, input.requires_grad);
  Operation& operation = Emit({input}, {out});
  GradientOf(operation, input);
  operation.forward_temporary = 2 * storages_[out.storage].bytes;
  operation.backward_temporary = operation.forward_temporary;
  return out;
}

Value Tape::Act(Value input, Activation activation) {
  if (activation == Activation::kGeluComposed) return ComposedGelu(input);
  const Value out = Make(input.elements, input.dtype, input.requires_grad);
  Operation& operation = Emit({input}, {out});
  Keep(operation, activation == Activation::kRelu ? out : input);
  GradientOf(operation, input);
  return out;
}

// 0.5 * x * (1 + tanh(c * (x + 0.044715 * pow(x, 3)))): kept are x (by pow), tanh's result, and both factors
// of the last product. Under autocast pow runs in FP32, and everything after it.
Value Tape::ComposedGelu(Value input) {
  const Value x = options_.autocast && input.dtype != Dtype::kFp32 ? Cast(input, Dtype::kFp32) : input;
  const Value tanh = Make(x.elements, x.dtype, x.requires_grad);
  const Value factor = Make(x.elements, x.dtype, x.requires_grad);
  const Value half = Make(input.elements, input.dtype, input.requires_grad);
  const Value out = Make(x.elements, x.dtype, x.requires_grad);
  Operation& operation = Emit({x}, {tanh, factor, half, out});
  for (const Value& kept : {x, tanh, factor, half}) Keep(operation, kept);
  GradientOf(operation, x);
  operation.forward_temporary = storages_[out.storage].bytes;
  operation.backward_temporary = 2 * storages_[out.storage].bytes;
  return out;
}

Value Tape::Multiply(Value left, Value right) {
  const Dtype dtype = left.dtype == Dtype::kFp32 || right.dtype == Dtype::kFp32 ? Dtype::kFp32 : left.dtype;
  const Value out =
      Make(std::max(left.elements, right.elements), dtype, left.requires_grad || right.requires_grad);
  Operation& operation = Emit({left, right}, {out});
  if (right.requires_grad) Keep(operation, left);
  if (left.requires_grad) Keep(operation, right);
  GradientOf(operation, left);
  GradientOf(operation, right);
  return out;
}

Value Tape::Add(Value left, Value right) {
  const Dtype dtype = left.dtype == Dtype::kFp32 || right.dtype == Dtype::kFp32 ? Dtype::kFp32 : left.dtype;
  const Value out = Make(left.elements, dtype, left.requires_grad || right.requires_grad);
  Operation& operation = Emit({left, right}, {out});
  GradientOf(operation, left);
  GradientOf(operation, right);
  operation.hands_on = left.dtype == right.dtype;
  return out;
}

Value Tape::Scale(Value input) {
  const Value out = Make(input.elements, input.dtype, input.requires_grad, storages_[input.storage].kind);
  GradientOf(Emit({input}, {out}), input);
  return out;
}

Value Tape::Dropout(Value input, double rate) {
  if (rate <= 0 || !options_.training) return input;
  const Value out = Make(input.elements, input.dtype, input.requires_grad);
  const Value mask = Make(input.elements, Dtype::kBool, input.requires_grad);
  Operation& operation = Emit({input}, {out, mask});
  Keep(operation, mask);
  GradientOf(operation, input);
  return out;
}

Value Tape::Tanh(Value input) {
  const Value out = Make(input.elements, input.dtype, input.requires_grad, storages_[input.storage].kind);
  Operation& operation = Emit({input}, {out});
  Keep(operation, out);
  GradientOf(operation, input);
  return out;
}

Value Tape::Combine(const std::vector<Value>& parts, uint64_t elements) {
  const bool needs_grad =
      std::any_of(parts.begin(), parts.end(), [](const Value& part) { return part.requires_grad; });
  const Value out = Make(elements, parts.front().dtype, needs_grad);
  Operation& operation = Emit(parts, {out});
  for (const Value& part : parts) GradientOf(operation, part);
  return out;
}

Value Tape::View(Value of, uint64_t elements) {
  of.elements = elements;
  return of;
}

void Tape::KeepCache(uint64_t elements_per_token) {
  if (!options_.keep_cache) return;
  cache_bytes_ += Bytes(options_.batch * options_.cache_tokens * Local(elements_per_token), ComputeDtype());
}

void Tape::Finish() {
  const int last = static_cast<int>(operations_.size()) - 1;
  for (const int storage : until_end_) storages_[storage].last_use = last;
}

}  // namespace vramtrace::estimate
