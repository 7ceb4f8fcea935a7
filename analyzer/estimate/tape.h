#pragma once
// A model as PyTorch runs it, without running it: which parameters there are, and operation by operation
// which tensors are made, which autograd keeps for the backward pass, and which are temporary. A family
// (family_*.cpp) writes the operations in the order of its forward; phases.h walks them and finds the peak.
//
// What an operation keeps follows from its derivative (PyTorch's tools/autograd/derivatives.yaml: "mul" keeps
// the other factor, "linear" its input, "silu" its input, ...) and from how Hugging Face's modules are
// written (transformers 5: which casts to FP32 they make). Each rule is checked by tests/accuracy/estimate
// against dry runs.

#include <cstdint>
#include <string>
#include <vector>

namespace vramtrace::estimate {

enum class Dtype : uint8_t { kFp32, kBf16, kInt8, kNf4, kBool, kInt64 };

// Bytes of one element; NF4 is a weight storage format and is counted by states.h, not here.
[[nodiscard]] uint64_t SizeOf(Dtype dtype);

// What bytes are, as `estimate` reports them.
enum class Class : uint8_t {
  kWeight,
  kGradient,
  kOptimizer,
  kActivation,  // kept for backward, and what the forward carries along
  kLogits,      // logits, their copies and gradients, the loss
  kTemporary,   // workspace of an operation, gradients of activations
  kCast,        // 16-bit copies of FP32 weights that autocast makes
  kCache,       // keys and values
  kUnsharded,   // parameters and gradients that sharding gathers for a while
  kCount,
};
[[nodiscard]] const char* ClassName(Class kind);

enum class Role : uint8_t { kLinear, kEmbedding, kHead, kNorm, kExpert, kOther };

// How tensor parallelism splits a linear layer (Megatron-LM, arXiv 1909.08053).
enum class Split : uint8_t { kNone, kColumn, kRow };

struct Parameter {
  uint64_t elements = 0;  // on one device, after tensor parallelism
  uint64_t whole = 0;     // of the model
  uint64_t rows = 1;      // as a matrix on one device: outputs
  uint64_t columns = 1;   // inputs; 1 for a vector
  Role role = Role::kOther;
  int block = -1;  // the layer it is in; -1 outside of them
  bool trainable = true;
  bool adapter = false;
};

// A tensor in the course of the forward. Views share a storage.
struct Value {
  int storage = -1;
  uint64_t elements = 0;
  Dtype dtype = Dtype::kBf16;
  bool requires_grad = false;
};

struct Storage {
  uint64_t bytes = 0;
  Class kind = Class::kActivation;
  int last_use = -1;  // the last operation of the forward that reads it
};

struct Operation {
  std::vector<int> reads;
  std::vector<int> makes;
  std::vector<int> keeps;         // until its backward has run
  std::vector<int> gradients_of;  // storages whose gradient its backward makes
  std::vector<int> parameters;    // whose gradient its backward makes
  uint64_t forward_temporary = 0;
  uint64_t backward_temporary = 0;
  Class temporary_kind = Class::kTemporary;
  bool hands_on = false;  // the gradient of its output is that of its inputs, without a copy
  bool has_backward = false;
  bool cast_gradients = false;  // its weight's gradient comes in 16 bits and is cast to the parameter's FP32
};

struct Block {
  int first = 0;  // operations [first, last]
  int last = 0;
  int input = -1;  // the storage that checkpointing keeps
};

enum class AttentionKind : uint8_t { kFused, kEager };

enum class Activation : uint8_t {
  kSilu,
  kGelu,
  kGeluComposed,  // written out by hand in transformers (gelu_new): every factor is kept
  kRelu,
};

// What the whole tape is written under.
struct TapeOptions {
  bool training = true;
  Dtype weights = Dtype::kBf16;  // of parameters; quantised base weights compute in `compute`
  Dtype compute = Dtype::kBf16;  // differs from `weights` under autocast and for quantised weights
  bool autocast = false;
  AttentionKind attention = AttentionKind::kFused;
  uint64_t batch = 1;
  uint64_t sequence = 512;
  bool whole_logits = true;   // false: of the last position only (generation)
  bool chunked_loss = false;  // logits are made in eight pieces, each in its turn
  bool fused_loss = false;    // linear and loss in one kernel: no logits at all
  bool keep_cache = false;    // keys and values stay (generation)
  uint64_t cache_tokens = 0;  // positions in the cache at the end

  bool base_frozen = false;  // LoRA, QLoRA
  bool quantised = false;    // base linear layers are dequantised for each use
  uint64_t rank = 0;         // 0: no adapters
  bool adapt_attention = true;
  bool adapt_query_value_only = false;
  bool adapt_mlp = true;
  Dtype adapters = Dtype::kFp32;
  double adapter_dropout = 0;
  bool inputs_require_grad = false;  // with checkpointing and frozen embeddings

  uint64_t tensor_parallel = 1;
  bool sequence_parallel = false;

  int first_layer = 0;  // pipeline stage: layers [first_layer, end_layer)
  int end_layer = -1;   // -1: all
  bool first_stage = true;
  bool last_stage = true;
};

class Tape {
 public:
  explicit Tape(TapeOptions options) : options_(options) {}

  [[nodiscard]] const TapeOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Storage>& storages() const { return storages_; }
  [[nodiscard]] const std::vector<Operation>& operations() const { return operations_; }
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] uint64_t buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] uint64_t cache_bytes() const { return cache_bytes_; }
  // Something was larger than any machine: nothing above may be used.
  [[nodiscard]] bool too_large() const { return too_large_; }

  // Parameters of the whole model, each counted once; adapters are not part of it.
  [[nodiscard]] uint64_t ParameterCount() const;
  [[nodiscard]] uint64_t AdapterCount() const;

  // Whether this stage holds layer `layer`.
  [[nodiscard]] bool HasLayer(int layer) const {
    return layer >= options_.first_layer && (options_.end_layer < 0 || layer < options_.end_layer);
  }

  // ---- What a family writes. Widths are the model's; the tape divides by the tensor parallelism.

  int AddParameter(uint64_t rows, uint64_t columns, Role role, Split split = Split::kNone);
  // A constant on the device: masks, position tables.
  void AddBuffer(uint64_t bytes) { buffer_bytes_ += bytes; }

  void BeginBlock(Value input);
  void EndBlock();

  // Token numbers or pixels: made outside, on the device for the whole step.
  Value Input(uint64_t elements, Dtype dtype);
  // Hidden states as the stage before sends them.
  Value Received(uint64_t width);

  Value Embedding(uint64_t rows, uint64_t width, Value ids, int* parameter = nullptr);
  // One more table that is added in (positions, token types): its rows are few.
  Value PositionEmbedding(uint64_t rows, uint64_t width, Value onto);

  struct LinearShape {
    uint64_t in = 0;
    uint64_t out = 0;
    bool bias = false;
    Split split = Split::kNone;
    enum class Place : uint8_t { kQuery, kKey, kValue, kAttention, kMlp, kOther } place = Place::kOther;
    int tied_to = -1;  // a parameter of which this is another use
    Role role = Role::kLinear;
  };
  Value Linear(Value input, const LinearShape& shape);

  // x / rms(x) * weight, through FP32 as transformers writes it. `one_plus`: Gemma's, which multiplies in
  // FP32.
  Value RmsNorm(Value input, uint64_t width, bool one_plus = false);
  Value LayerNorm(Value input, uint64_t width, bool bias = true);

  Value Rotary(Value input);
  Value Act(Value input, Activation activation);
  // The product of two tensors of one shape.
  Value Multiply(Value left, Value right);
  Value Add(Value left, Value right);
  // x times a constant: nothing is kept.
  Value Scale(Value input);
  Value Dropout(Value input, double rate);
  Value Tanh(Value input);
  // A new tensor out of several (concatenation, padding, expansion): nothing is kept.
  Value Combine(const std::vector<Value>& parts, uint64_t elements);
  // Part of a tensor under the same storage.
  [[nodiscard]] static Value View(Value of, uint64_t elements);
  Value Cast(Value input, Dtype dtype);

  struct Heads {
    uint64_t query = 0;
    uint64_t key_value = 0;
    uint64_t width = 0;        // of queries and keys
    uint64_t value_width = 0;  // 0: the same
    bool softcap = false;
    double dropout = 0;
    bool bias = false;     // a position bias is added (T5): eager
    bool by_head = false;  // queries lie head by head (they were concatenated), and so does the output of a
                           // fused kernel: the projection behind it copies
  };
  // Scaled dot-product attention over `query_tokens` x `key_tokens` positions a sequence.
  Value Attend(Value query, Value key, Value value, const Heads& heads, uint64_t query_tokens,
               uint64_t key_tokens);
  // Keys and values of this layer stay on the device.
  void KeepCache(uint64_t elements_per_token);

  struct ExpertShape {
    uint64_t width = 0;
    uint64_t inner = 0;
    uint64_t experts = 0;
    uint64_t chosen = 0;
    bool fp32_weights = true;  // the routing weights stay FP32, and so does the weighted output
    bool fp32_router = false;  // the router multiplies an FP32 copy of its input, which is kept (DeepSeek)
  };
  // A router and its experts, as one grouped matrix product (transformers 5's default).
  Value Experts(Value input, const ExpertShape& shape);

  // Loss of every position: logits in FP32, log-softmax, its gradient.
  void CrossEntropy(Value hidden, const LinearShape& head, bool softcap = false);
  // Logits without a loss, of the positions that are asked for.
  void Logits(Value hidden, const LinearShape& head);
  // A loss of a few numbers (classification).
  void SmallLoss(Value logits);

  // The last operation has run; storages that live to the end of the forward are extended to it.
  void Finish();

  // Tokens of one sequence times batch.
  [[nodiscard]] uint64_t Tokens() const { return options_.batch * options_.sequence; }

  [[nodiscard]] uint64_t Bytes(uint64_t elements, Dtype dtype);

 private:
  Value Make(uint64_t elements, Dtype dtype, bool requires_grad, Class kind = Class::kActivation);
  Operation& Emit(const std::vector<Value>& reads, const std::vector<Value>& makes);
  void Keep(Operation& operation, const Value& value);
  void GradientOf(Operation& operation, const Value& value);
  [[nodiscard]] Dtype ComputeDtype() const { return options_.autocast ? Dtype::kBf16 : options_.compute; }
  [[nodiscard]] uint64_t Local(uint64_t width) const;
  void Hold(const Value& value) { until_end_.push_back(value.storage); }
  void FusedLoss(Value hidden, const LinearShape& head);
  void ChunkedLoss(Value hidden, const LinearShape& head);
  [[nodiscard]] bool Adapted(LinearShape::Place place) const;
  Value ComposedGelu(Value input);
  Value Adapt(Value input, Value base, const LinearShape& shape);
  Value EagerAttend(Value query, Value key, Value value, const Heads& heads, uint64_t queries, uint64_t keys);

  TapeOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<Storage> storages_;
  std::vector<Operation> operations_;
  std::vector<Block> blocks_;
  std::vector<int> until_end_;
  uint64_t buffer_bytes_ = 0;
  uint64_t cache_bytes_ = 0;
  int block_ = -1;
  bool too_large_ = false;
};

}  // namespace vramtrace::estimate
