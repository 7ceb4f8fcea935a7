#include "analyzer/estimate/family_decoder.h"

#include <algorithm>

namespace vramtrace::estimate {
namespace {

using Place = Tape::LinearShape::Place;

Value Mlp(const DecoderShape& shape, uint64_t inner, Tape& tape, Value x) {
  if (shape.fused_projections) {
    const Value both =
        tape.Linear(x, {.in = shape.width, .out = 2 * inner, .split = Split::kColumn, .place = Place::kMlp});
    const Value half = Tape::View(both, both.elements / 2);
    const Value product = tape.Multiply(half, tape.Act(half, shape.activation));
    return tape.Linear(product,
                       {.in = inner, .out = shape.width, .split = Split::kRow, .place = Place::kMlp});
  }
  const Tape::LinearShape up{
      .in = shape.width, .out = inner, .bias = shape.mlp_bias, .split = Split::kColumn, .place = Place::kMlp};
  const Value gate = tape.Act(tape.Linear(x, up), shape.activation);
  const Value product = tape.Multiply(gate, tape.Linear(x, up));
  return tape.Linear(
      product,
      {.in = inner, .out = shape.width, .bias = shape.mlp_bias, .split = Split::kRow, .place = Place::kMlp});
}

Value Sparse(const DecoderShape& shape, Tape& tape, Value x) {
  const Value experts = tape.Experts(x, {.width = shape.width,
                                         .inner = shape.expert_inner,
                                         .experts = shape.experts,
                                         .chosen = shape.chosen,
                                         .fp32_weights = shape.fp32_expert_weights,
                                         .fp32_router = shape.fp32_router});
  if (shape.shared_inner == 0) return experts;
  Value shared = Mlp(shape, shape.shared_inner, tape, x);
  if (shape.shared_gate) {
    const Value gate = tape.Linear(x, {.in = shape.width, .out = 1});
    shared = tape.Multiply(shared, gate);
  }
  return tape.Add(experts, shared);
}

Value Attention(const DecoderShape& shape, Tape& tape, Value x) {
  const uint64_t query_width = shape.heads * shape.head_width;
  const uint64_t key_width = shape.key_value_heads * shape.head_width;
  Value query;
  Value key;
  Value value;
  if (shape.fused_projections) {
    const uint64_t all = query_width + 2 * key_width;
    const Value joint =
        tape.Linear(x, {.in = shape.width, .out = all, .split = Split::kColumn, .place = Place::kAttention});
    query = Tape::View(joint, joint.elements / all * query_width);
    key = value = Tape::View(joint, joint.elements / all * key_width);
  } else {
    const auto project = [&](uint64_t out, Place place) {
      return tape.Linear(
          x,
          {.in = shape.width, .out = out, .bias = shape.qkv_bias, .split = Split::kColumn, .place = place});
    };
    query = project(query_width, Place::kQuery);
    key = project(key_width, Place::kKey);
    value = project(key_width, Place::kValue);
  }
  if (shape.head_norms) {
    query = tape.RmsNorm(query, shape.head_width, shape.one_plus_norm);
    key = tape.RmsNorm(key, shape.head_width, shape.one_plus_norm);
  }
  query = tape.Rotary(query);
  key = tape.Rotary(key);
  tape.KeepCache(2 * key_width);
  const Value mixed = tape.Attend(query, key, value,
                                  {.query = shape.heads,
                                   .key_value = shape.key_value_heads,
                                   .width = shape.head_width,
                                   .softcap = shape.score_softcap,
                                   .by_head = shape.fused_projections},
                                  tape.options().sequence, tape.options().sequence);
  return tape.Linear(mixed, {.in = query_width,
                             .out = shape.width,
                             .bias = shape.output_bias,
                             .split = Split::kRow,
                             .place = Place::kAttention});
}

// modeling_deepseek_v2.py and _v3.py: queries through a low rank (or not), keys and values through another
// that is what the cache holds; the part with positions is one for all heads.
Value LatentAttention(const DecoderShape& shape, Tape& tape, Value x) {
  const uint64_t query_head = shape.nope_width + shape.rope_width;
  const Tape::LinearShape query_out{.in = shape.query_rank > 0 ? shape.query_rank : shape.width,
                                    .out = shape.heads * query_head,
                                    .split = Split::kColumn,
                                    .place = Place::kQuery};
  Value query = x;
  if (shape.query_rank > 0) {
    const Value low = tape.Linear(
        x, {.in = shape.width, .out = shape.query_rank, .bias = shape.qkv_bias, .place = Place::kQuery});
    query = tape.RmsNorm(low, shape.query_rank);
  }
  query = tape.Linear(query, query_out);
  const uint64_t tokens = query.elements * shape.rope_width / query_head;
  const Value turned = tape.Rotary(Tape::View(query, tokens));
  const Value queries = tape.Combine({query, turned}, query.elements);

  const uint64_t joint_width = shape.key_value_rank + shape.rope_width;
  const Value joint =
      tape.Linear(x, {.in = shape.width, .out = joint_width, .bias = shape.qkv_bias, .place = Place::kKey});
  const uint64_t positions = joint.elements / joint_width;
  const Value latent =
      tape.RmsNorm(Tape::View(joint, positions * shape.key_value_rank), shape.key_value_rank);
  const Value key_turned = tape.Rotary(Tape::View(joint, positions * shape.rope_width));
  tape.KeepCache(joint_width * tape.options().tensor_parallel);  // every device keeps all of it
  const uint64_t expanded_head = shape.nope_width + shape.value_width;
  const Value expanded = tape.Linear(latent, {.in = shape.key_value_rank,
                                              .out = shape.heads * expanded_head,
                                              .split = Split::kColumn,
                                              .place = Place::kValue});
  const uint64_t head_positions = expanded.elements / expanded_head;
  const Value keys = tape.Combine({expanded, key_turned}, head_positions * query_head);
  const Value values = Tape::View(expanded, head_positions * shape.value_width);
  const Value mixed = tape.Attend(queries, keys, values,
                                  {.query = shape.heads,
                                   .key_value = shape.heads,
                                   .width = query_head,
                                   .value_width = shape.value_width,
                                   .by_head = true},
                                  tape.options().sequence, tape.options().sequence);
  return tape.Linear(mixed, {.in = shape.heads * shape.value_width,
                             .out = shape.width,
                             .bias = shape.qkv_bias,
                             .split = Split::kRow,
                             .place = Place::kAttention});
}

bool IsSparse(const DecoderShape& shape, uint64_t layer) {
  return shape.experts > 0 && layer >= shape.first_dense && (layer + 1) % shape.sparse_step == 0;
}

Value Layer(const DecoderShape& shape, uint64_t layer, Tape& tape, Value x) {
  tape.BeginBlock(x);
  const auto norm = [&](Value value) { return tape.RmsNorm(value, shape.width, shape.one_plus_norm); };
  const Value normed = norm(x);
  Value mixed = shape.latent ? LatentAttention(shape, tape, normed) : Attention(shape, tape, normed);
  if (shape.post_norms) mixed = norm(mixed);
  x = tape.Add(x, mixed);
  const Value second = norm(x);
  Value out = IsSparse(shape, layer) ? Sparse(shape, tape, second) : Mlp(shape, shape.inner, tape, second);
  if (shape.post_norms) out = norm(out);
  x = tape.Add(x, out);
  tape.EndBlock();
  return x;
}

}  // namespace

DecoderShape ReadDecoder(Config& config) {
  DecoderShape shape;
  shape.width = config.Whole("hidden_size", 1, kMostWidth);
  shape.layers = config.Whole("num_hidden_layers", 1, kMostLayers);
  shape.heads = config.Whole("num_attention_heads", 1, kMostWidth);
  shape.vocabulary = config.Whole("vocab_size", 1, kMostRows);
  shape.inner = config.WholeOr("intermediate_size", 4 * shape.width, 1, 4 * kMostWidth);
  shape.key_value_heads = config.WholeOr("num_key_value_heads", shape.heads, 1, shape.heads);
  const uint64_t usual = std::max<uint64_t>(shape.width / shape.heads, 1);
  shape.head_width = config.WholeOr("head_dim", usual, 1, kMostWidth);
  shape.tied = config.FlagOr("tie_word_embeddings", false);
  shape.qkv_bias = shape.output_bias = config.FlagOr("attention_bias", false);
  shape.mlp_bias = config.FlagOr("mlp_bias", false);
  return shape;
}

void WriteDecoder(const DecoderShape& shape, Tape& tape, Head head, uint64_t classes) {
  const TapeOptions& options = tape.options();
  int table = -1;
  Value x;
  if (options.first_stage) {
    const Value ids = tape.Input(tape.Tokens(), Dtype::kInt64);
    x = tape.Embedding(shape.vocabulary, shape.width, ids, &table);
    if (shape.embedding_scale) x = tape.Scale(x);
  } else {
    x = tape.Received(shape.width);
  }
  for (uint64_t layer = 0; layer < shape.layers && !tape.too_large(); ++layer) {
    if (tape.HasLayer(static_cast<int>(layer))) x = Layer(shape, layer, tape, x);
  }
  if (!options.last_stage || tape.too_large()) return;
  x = tape.RmsNorm(x, shape.width, shape.one_plus_norm);
  if (head == Head::kNone) return tape.SmallLoss(x);
  if (head != Head::kLanguageModel) {
    // <Model>ForSequenceClassification and ForTokenClassification: `score` over every position.
    return tape.SmallLoss(tape.Linear(
        x, {.in = shape.width, .out = classes, .bias = head == Head::kTokenClasses, .role = Role::kHead}));
  }
  Tape::LinearShape out{
      .in = shape.width, .out = shape.vocabulary, .split = Split::kColumn, .role = Role::kHead};
  if (shape.tied) out.tied_to = table;
  if (options.training) {
    tape.CrossEntropy(x, out, shape.logit_softcap);
  } else {
    tape.Logits(x, out);
  }
}

}  // namespace vramtrace::estimate
