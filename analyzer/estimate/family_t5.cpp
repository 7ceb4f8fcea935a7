// T5: no scaling in attention, a bias for relative positions that all layers of a stack share, RMSNorm
// without the copy to FP32 that others keep.

#include <algorithm>

#include "analyzer/estimate/family_builders.h"

namespace vramtrace::estimate {
namespace {

using Place = Tape::LinearShape::Place;

struct T5Shape {
  uint64_t width = 0;
  uint64_t inner = 0;
  uint64_t heads = 0;
  uint64_t head_width = 0;
  uint64_t buckets = 0;
  double dropout = 0;
  bool gated = false;
  Activation activation = Activation::kRelu;
};

Value Attention(const T5Shape& shape, Tape& tape, Value x, Value source, uint64_t queries, uint64_t keys) {
  const auto project = [&](Value from, Place place) {
    return tape.Linear(
        from,
        {.in = shape.width, .out = shape.heads * shape.head_width, .split = Split::kColumn, .place = place});
  };
  const Value query = project(x, Place::kQuery);
  const Value key = project(source, Place::kKey);
  const Value value = project(source, Place::kValue);
  const Value mixed = tape.Attend(query, key, value,
                                  {.query = shape.heads,
                                   .key_value = shape.heads,
                                   .width = shape.head_width,
                                   .dropout = shape.dropout,
                                   .bias = true},
                                  queries, keys);
  const Value out = tape.Linear(mixed, {.in = shape.heads * shape.head_width,
                                        .out = shape.width,
                                        .split = Split::kRow,
                                        .place = Place::kAttention});
  return tape.Dropout(out, shape.dropout);
}

Value Mlp(const T5Shape& shape, Tape& tape, Value x) {
  const Tape::LinearShape up{
      .in = shape.width, .out = shape.inner, .split = Split::kColumn, .place = Place::kMlp};
  Value hidden = tape.Act(tape.Linear(x, up), shape.activation);
  if (shape.gated) hidden = tape.Multiply(hidden, tape.Linear(x, up));
  hidden = tape.Dropout(hidden, shape.dropout);
  const Value out = tape.Linear(
      hidden, {.in = shape.inner, .out = shape.width, .split = Split::kRow, .place = Place::kMlp});
  return tape.Dropout(out, shape.dropout);
}

}  // namespace

void BuildT5(Config& config, Tape& tape, Head head) {
  T5Shape shape;
  shape.width = config.Whole("d_model", 1, kMostWidth);
  shape.inner = config.Whole("d_ff", 1, 4 * kMostWidth);
  shape.heads = config.Whole("num_heads", 1, kMostWidth);
  shape.head_width = config.Whole("d_kv", 1, kMostWidth);
  shape.buckets = config.WholeOr("relative_attention_num_buckets", 32, 1, kMostWidth);
  shape.dropout = config.NumberOr("dropout_rate", 0.1, 0, 1);
  const std::string feed_forward = config.Text("feed_forward_proj");
  shape.gated = feed_forward.starts_with("gated");
  // "gated-gelu" means gelu_new (configuration_t5.py).
  shape.activation = feed_forward == "gated-gelu"                     ? Activation::kGeluComposed
                     : feed_forward.find("gelu") == std::string::npos ? Activation::kRelu
                                                                      : Activation::kGelu;
  const uint64_t encoder_layers = config.Whole("num_layers", 1, kMostLayers);
  const uint64_t decoder_layers = config.WholeOr("num_decoder_layers", encoder_layers, 1, kMostLayers);
  const uint64_t vocabulary = config.Whole("vocab_size", 1, kMostRows);
  const bool tied = config.FlagOr("tie_word_embeddings", true);
  if (config.error()) return;
  const uint64_t length = tape.options().sequence;
  const auto norm = [&](Value x) { return tape.RmsNorm(x, shape.width); };

  const Value ids = tape.Input(tape.Tokens(), Dtype::kInt64);
  int table = -1;
  Value x = tape.Dropout(tape.Embedding(vocabulary, shape.width, ids, &table), shape.dropout);
  (void)tape.AddParameter(shape.buckets, shape.heads, Role::kEmbedding);
  for (uint64_t layer = 0; layer < encoder_layers && !tape.too_large(); ++layer) {
    tape.BeginBlock(x);
    const Value normed = norm(x);
    x = tape.Add(x, Attention(shape, tape, normed, normed, length, length));
    x = tape.Add(x, Mlp(shape, tape, norm(x)));
    tape.EndBlock();
  }
  const Value memory = tape.Dropout(norm(x), shape.dropout);

  // The decoder reads the labels, shifted, through the same table.
  Value y = tape.Combine({memory}, memory.elements);
  y = tape.Dropout(y, shape.dropout);
  (void)tape.AddParameter(shape.buckets, shape.heads, Role::kEmbedding);
  for (uint64_t layer = 0; layer < decoder_layers && !tape.too_large(); ++layer) {
    tape.BeginBlock(y);
    const Value normed = norm(y);
    y = tape.Add(y, Attention(shape, tape, normed, normed, length, length));
    y = tape.Add(y, Attention(shape, tape, norm(y), memory, length, length));
    y = tape.Add(y, Mlp(shape, tape, norm(y)));
    tape.EndBlock();
    tape.KeepCache(4 * shape.heads * shape.head_width);  // its own, and those of the encoder's output
  }
  y = tape.Dropout(norm(y), shape.dropout);
  if (head != Head::kLanguageModel) return tape.SmallLoss(y);
  Tape::LinearShape out{.in = shape.width, .out = vocabulary, .split = Split::kColumn, .role = Role::kHead};
  if (tied) out.tied_to = table;
  if (tape.options().training) {
    tape.CrossEntropy(y, out);
  } else {
    tape.Logits(y, out);
  }
}

}  // namespace vramtrace::estimate
