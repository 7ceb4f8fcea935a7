// Families with LayerNorm and learned positions: GPT-2, OPT, BERT, ViT, Whisper; and T5.

#include <algorithm>

#include "analyzer/estimate/family_builders.h"

namespace vramtrace::estimate {
namespace {

using Place = Tape::LinearShape::Place;

// What transformer layers of this kind differ in.
struct LayerShape {
  uint64_t width = 0;
  uint64_t inner = 0;
  uint64_t heads = 0;
  uint64_t head_width = 0;  // 0: width / heads
  bool norm_first = true;   // false: after the sum (BERT)
  bool key_bias = true;
  bool bias = true;        // of every other linear layer
  bool fused_qkv = false;  // GPT-2: one product
  double hidden_dropout = 0;
  double attention_dropout = 0;
  double inner_dropout = 0;
  Activation activation = Activation::kGelu;

  [[nodiscard]] uint64_t HeadWidth() const { return head_width > 0 ? head_width : width / heads; }
};

Value Project(const LayerShape& shape, Tape& tape, Value x, bool bias, Place place) {
  return tape.Linear(x, {.in = shape.width,
                         .out = shape.heads * shape.HeadWidth(),
                         .bias = bias,
                         .split = Split::kColumn,
                         .place = place});
}

// Attention of `x` over `source`, with its projections.
Value Attention(const LayerShape& shape, Tape& tape, Value x, Value source, uint64_t queries, uint64_t keys) {
  Value query;
  Value key;
  Value value;
  if (shape.fused_qkv) {
    const Value joint = tape.Linear(x, {.in = shape.width,
                                        .out = 3 * shape.width,
                                        .bias = shape.bias,
                                        .split = Split::kColumn,
                                        .place = Place::kAttention});
    query = key = value = Tape::View(joint, joint.elements / 3);
  } else {
    query = Project(shape, tape, x, shape.bias, Place::kQuery);
    key = Project(shape, tape, source, shape.key_bias, Place::kKey);
    value = Project(shape, tape, source, shape.bias, Place::kValue);
  }
  const Value mixed = tape.Attend(query, key, value,
                                  {.query = shape.heads,
                                   .key_value = shape.heads,
                                   .width = shape.HeadWidth(),
                                   .dropout = shape.attention_dropout},
                                  queries, keys);
  const Value out = tape.Linear(mixed, {.in = shape.heads * shape.HeadWidth(),
                                        .out = shape.width,
                                        .bias = shape.bias,
                                        .split = Split::kRow,
                                        .place = Place::kAttention});
  return tape.Dropout(out, shape.hidden_dropout);
}

Value Mlp(const LayerShape& shape, Tape& tape, Value x) {
  Value hidden = tape.Linear(x, {.in = shape.width,
                                 .out = shape.inner,
                                 .bias = shape.bias,
                                 .split = Split::kColumn,
                                 .place = Place::kMlp});
  hidden = tape.Dropout(tape.Act(hidden, shape.activation), shape.inner_dropout);
  const Value out = tape.Linear(hidden, {.in = shape.inner,
                                         .out = shape.width,
                                         .bias = shape.bias,
                                         .split = Split::kRow,
                                         .place = Place::kMlp});
  return tape.Dropout(out, shape.hidden_dropout);
}

Value Layer(const LayerShape& shape, Tape& tape, Value x, uint64_t tokens) {
  tape.BeginBlock(x);
  const auto norm = [&](Value value) { return tape.LayerNorm(value, shape.width); };
  if (shape.norm_first) {
    const Value normed = norm(x);
    x = tape.Add(x, Attention(shape, tape, normed, normed, tokens, tokens));
    x = tape.Add(x, Mlp(shape, tape, norm(x)));
  } else {
    x = norm(tape.Add(x, Attention(shape, tape, x, x, tokens, tokens)));
    x = norm(tape.Add(x, Mlp(shape, tape, x)));
  }
  tape.EndBlock();
  return x;
}

Activation ReadActivation(Config& config, std::string_view key, Activation otherwise) {
  const std::string name = config.Text(key);
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu_new" || name == "gelu_fast") return Activation::kGeluComposed;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name.starts_with("gelu")) return Activation::kGelu;
  if (!name.empty())
    config.Refuse(key, "'" + name.substr(0, 40) + "' is not an activation that is known: gelu, relu, silu");
  return otherwise;
}

double Rate(Config& config, std::string_view key, double otherwise) {
  return config.NumberOr(key, otherwise, 0, 1);
}

// The end of a language model whose head is its word table.
void WordHead(Tape& tape, Value x, uint64_t width, uint64_t vocabulary, int table, bool bias = false) {
  Tape::LinearShape head{.in = width,
                         .out = vocabulary,
                         .bias = bias,
                         .split = Split::kColumn,
                         .tied_to = table,
                         .role = Role::kHead};
  if (tape.options().training) {
    tape.CrossEntropy(x, head);
  } else {
    tape.Logits(x, head);
  }
}

void ClassHead(Tape& tape, Value x, uint64_t width, uint64_t positions, uint64_t classes, bool bias) {
  const Value first = Tape::View(x, positions * width);
  tape.SmallLoss(tape.Linear(first, {.in = width, .out = classes, .bias = bias, .role = Role::kHead}));
}

}  // namespace

void BuildGpt2(Config& config, Tape& tape, Head head) {
  LayerShape shape;
  shape.width = config.WholeOr("n_embd", 768, 1, kMostWidth);
  shape.heads = config.WholeOr("n_head", 12, 1, shape.width);
  shape.inner = config.WholeOr("n_inner", 4 * shape.width, 1, 4 * kMostWidth);
  shape.fused_qkv = true;
  shape.hidden_dropout = Rate(config, "resid_pdrop", 0.1);
  shape.attention_dropout = Rate(config, "attn_pdrop", 0.1);
  shape.activation = ReadActivation(config, "activation_function", Activation::kGeluComposed);
  const uint64_t layers = config.WholeOr("n_layer", 12, 1, kMostLayers);
  const uint64_t vocabulary = config.WholeOr("vocab_size", 50257, 1, kMostRows);
  const uint64_t positions = config.WholeOr("n_positions", 1024, 1, kMostRows);
  const double embedding_dropout = Rate(config, "embd_pdrop", 0.1);
  const uint64_t classes = head == Head::kLanguageModel ? 0 : config.Labels();
  if (config.error()) return;
  const Value ids = tape.Input(tape.Tokens(), Dtype::kInt64);
  int table = -1;
  Value x = tape.Embedding(vocabulary, shape.width, ids, &table);
  x = tape.PositionEmbedding(positions, shape.width, x);
  x = tape.Dropout(x, embedding_dropout);
  for (uint64_t layer = 0; layer < layers && !tape.too_large(); ++layer) {
    x = Layer(shape, tape, x, tape.options().sequence);
    tape.KeepCache(2 * shape.width);
  }
  x = tape.LayerNorm(x, shape.width);
  if (head == Head::kLanguageModel) return WordHead(tape, x, shape.width, vocabulary, table);
  if (head == Head::kNone) return tape.SmallLoss(x);
  ClassHead(tape, x, shape.width, tape.Tokens(), classes, head == Head::kTokenClasses);
}

void BuildOpt(Config& config, Tape& tape, Head head) {
  LayerShape shape;
  shape.width = config.Whole("hidden_size", 1, kMostWidth);
  shape.heads = config.Whole("num_attention_heads", 1, shape.width);
  shape.inner = config.Whole("ffn_dim", 1, 4 * kMostWidth);
  shape.bias = shape.key_bias = config.FlagOr("enable_bias", true);
  shape.hidden_dropout = Rate(config, "dropout", 0.1);
  shape.attention_dropout = Rate(config, "attention_dropout", 0.0);
  shape.activation = ReadActivation(config, "activation_function", Activation::kRelu);
  const bool norm_before = config.FlagOr("do_layer_norm_before", true);
  shape.norm_first = norm_before;
  const bool last_norm = norm_before && !config.FlagOr("_remove_final_layer_norm", false);
  const uint64_t layers = config.Whole("num_hidden_layers", 1, kMostLayers);
  const uint64_t vocabulary = config.Whole("vocab_size", 1, kMostRows);
  const uint64_t positions = config.WholeOr("max_position_embeddings", 2048, 1, kMostRows);
  const uint64_t words = config.WholeOr("word_embed_proj_dim", shape.width, 1, kMostWidth);
  const uint64_t classes = head == Head::kLanguageModel ? 0 : config.Labels();
  if (config.error()) return;
  constexpr uint64_t kPositionOffset = 2;  // OPTLearnedPositionalEmbedding
  const Value ids = tape.Input(tape.Tokens(), Dtype::kInt64);
  int table = -1;
  Value x = tape.Embedding(vocabulary, words, ids, &table);
  if (words != shape.width) x = tape.Linear(x, {.in = words, .out = shape.width});
  x = tape.PositionEmbedding(positions + kPositionOffset, shape.width, x);
  for (uint64_t layer = 0; layer < layers && !tape.too_large(); ++layer) {
    x = Layer(shape, tape, x, tape.options().sequence);
    tape.KeepCache(2 * shape.width);
  }
  if (last_norm) x = tape.LayerNorm(x, shape.width);
  if (words != shape.width) x = tape.Linear(x, {.in = shape.width, .out = words});
  if (head == Head::kLanguageModel) return WordHead(tape, x, words, vocabulary, table);
  if (head == Head::kNone) return tape.SmallLoss(x);
  ClassHead(tape, x, words, tape.Tokens(), classes, head == Head::kTokenClasses);
}

void BuildBert(Config& config, Tape& tape, Head head) {
  LayerShape shape;
  shape.width = config.Whole("hidden_size", 1, kMostWidth);
  shape.heads = config.Whole("num_attention_heads", 1, shape.width);
  shape.inner = config.Whole("intermediate_size", 1, 4 * kMostWidth);
  shape.norm_first = false;
  shape.hidden_dropout = Rate(config, "hidden_dropout_prob", 0.1);
  shape.attention_dropout = Rate(config, "attention_probs_dropout_prob", 0.1);
  shape.activation = ReadActivation(config, "hidden_act", Activation::kGelu);
  const uint64_t layers = config.Whole("num_hidden_layers", 1, kMostLayers);
  const uint64_t vocabulary = config.Whole("vocab_size", 1, kMostRows);
  const uint64_t positions = config.WholeOr("max_position_embeddings", 512, 1, kMostRows);
  const uint64_t types = config.WholeOr("type_vocab_size", 2, 1, kMostRows);
  const uint64_t classes = head == Head::kMaskedWords || head == Head::kLanguageModel ? 0 : config.Labels();
  if (config.error()) return;
  const Value ids = tape.Input(tape.Tokens(), Dtype::kInt64);
  int table = -1;
  Value x = tape.Embedding(vocabulary, shape.width, ids, &table);
  x = tape.PositionEmbedding(types, shape.width, x);
  x = tape.PositionEmbedding(positions, shape.width, x);
  x = tape.Dropout(tape.LayerNorm(x, shape.width), shape.hidden_dropout);
  for (uint64_t layer = 0; layer < layers && !tape.too_large(); ++layer) {
    x = Layer(shape, tape, x, tape.options().sequence);
  }
  const Tape::LinearShape dense{.in = shape.width, .out = shape.width, .bias = true};
  if (head == Head::kMaskedWords || head == Head::kLanguageModel) {
    x = tape.LayerNorm(tape.Act(tape.Linear(x, dense), shape.activation), shape.width);
    return WordHead(tape, x, shape.width, vocabulary, table, true);
  }
  if (head == Head::kTokenClasses) {
    return ClassHead(tape, tape.Dropout(x, shape.hidden_dropout), shape.width, tape.Tokens(), classes, true);
  }
  // The pooler looks at the first position.
  const Value first = Tape::View(x, tape.options().batch * shape.width);
  const Value pooled = tape.Tanh(tape.Linear(first, dense));
  if (head == Head::kNone) return tape.SmallLoss(pooled);
  ClassHead(tape, tape.Dropout(pooled, shape.hidden_dropout), shape.width, tape.options().batch, classes,
            true);
}

void BuildVit(Config& config, Tape& tape, Head head) {
  LayerShape shape;
  shape.width = config.Whole("hidden_size", 1, kMostWidth);
  shape.heads = config.Whole("num_attention_heads", 1, shape.width);
  shape.inner = config.Whole("intermediate_size", 1, 4 * kMostWidth);
  shape.hidden_dropout = Rate(config, "hidden_dropout_prob", 0.0);
  shape.attention_dropout = Rate(config, "attention_probs_dropout_prob", 0.0);
  shape.activation = ReadActivation(config, "hidden_act", Activation::kGelu);
  const bool qkv_bias = config.FlagOr("qkv_bias", true);
  const uint64_t layers = config.Whole("num_hidden_layers", 1, kMostLayers);
  const uint64_t image = config.WholeOr("image_size", 224, 1, 1 << 16);
  const uint64_t patch = config.WholeOr("patch_size", 16, 1, image);
  const uint64_t channels = config.WholeOr("num_channels", 3, 1, 1024);
  const uint64_t pooler = config.WholeOr("pooler_output_size", shape.width, 1, kMostWidth);
  const uint64_t classes = head == Head::kClasses ? config.Labels() : 0;
  if (config.error()) return;
  if (!qkv_bias) config.Refuse("qkv_bias", "false is not known: the counts would be wrong");
  const uint64_t batch = tape.options().batch;
  const uint64_t patches = (image / patch) * (image / patch);
  const Value pixels = tape.Input(batch * channels * image * image, tape.options().weights);
  // A convolution whose stride is its width is a linear layer over patches.
  const Value patch_pixels = Tape::View(pixels, batch * patches * channels * patch * patch);
  Value x = tape.Linear(patch_pixels, {.in = channels * patch * patch, .out = shape.width, .bias = true});
  x = tape.Combine({x}, batch * (patches + 1) * shape.width);
  (void)tape.AddParameter(shape.width, 1, Role::kOther);  // the class token
  x = tape.PositionEmbedding(patches + 1, shape.width, x);
  x = tape.Dropout(x, shape.hidden_dropout);
  for (uint64_t layer = 0; layer < layers && !tape.too_large(); ++layer)
    x = Layer(shape, tape, x, patches + 1);
  x = tape.LayerNorm(x, shape.width);
  if (head == Head::kClasses) return ClassHead(tape, x, shape.width, batch, classes, true);
  const Value first = Tape::View(x, batch * shape.width);
  tape.SmallLoss(tape.Tanh(tape.Linear(first, {.in = shape.width, .out = pooler, .bias = true})));
}

void BuildWhisper(Config& config, Tape& tape, Head head) {
  LayerShape encoder;
  encoder.width = config.Whole("d_model", 1, kMostWidth);
  encoder.heads = config.Whole("encoder_attention_heads", 1, encoder.width);
  encoder.inner = config.Whole("encoder_ffn_dim", 1, 4 * kMostWidth);
  encoder.key_bias = false;
  encoder.hidden_dropout = Rate(config, "dropout", 0.0);
  encoder.attention_dropout = Rate(config, "attention_dropout", 0.0);
  encoder.inner_dropout = Rate(config, "activation_dropout", 0.0);
  encoder.activation = ReadActivation(config, "activation_function", Activation::kGelu);
  LayerShape decoder = encoder;
  decoder.heads = config.Whole("decoder_attention_heads", 1, encoder.width);
  decoder.inner = config.Whole("decoder_ffn_dim", 1, 4 * kMostWidth);
  const uint64_t encoder_layers = config.Whole("encoder_layers", 1, kMostLayers);
  const uint64_t decoder_layers = config.Whole("decoder_layers", 1, kMostLayers);
  const uint64_t vocabulary = config.Whole("vocab_size", 1, kMostRows);
  const uint64_t bins = config.WholeOr("num_mel_bins", 80, 1, kMostWidth);
  const uint64_t frames = config.WholeOr("max_source_positions", 1500, 1, kMostRows);
  const uint64_t positions = config.WholeOr("max_target_positions", 448, 1, kMostRows);
  if (config.error()) return;
  const uint64_t batch = tape.options().batch;
  const uint64_t width = encoder.width;
  const uint64_t words = tape.options().sequence;

  // Two convolutions of width 3 over the frames; the second halves them.
  const Value features = tape.Input(batch * bins * 2 * frames, tape.options().weights);
  const auto convolve = [&](Value input, uint64_t in, uint64_t out_positions) {
    const Value columns = Tape::View(input, batch * out_positions * 3 * in);
    return tape.Act(tape.Linear(columns, {.in = 3 * in, .out = width, .bias = true}), Activation::kGelu);
  };
  Value x = convolve(features, bins, 2 * frames);
  x = convolve(x, width, frames);
  x = tape.PositionEmbedding(frames, width, x);
  x = tape.Dropout(x, encoder.hidden_dropout);
  for (uint64_t layer = 0; layer < encoder_layers && !tape.too_large(); ++layer)
    x = Layer(encoder, tape, x, frames);
  const Value memory = tape.LayerNorm(x, width);

  const Value ids = tape.Input(batch * words, Dtype::kInt64);
  int table = -1;
  Value y = tape.Embedding(vocabulary, width, ids, &table);
  y = tape.Dropout(tape.PositionEmbedding(positions, width, y), decoder.hidden_dropout);
  for (uint64_t layer = 0; layer < decoder_layers && !tape.too_large(); ++layer) {
    tape.BeginBlock(y);
    const Value normed = tape.LayerNorm(y, width);
    y = tape.Add(y, Attention(decoder, tape, normed, normed, words, words));
    y = tape.Add(y, Attention(decoder, tape, tape.LayerNorm(y, width), memory, words, frames));
    y = tape.Add(y, Mlp(decoder, tape, tape.LayerNorm(y, width)));
    tape.EndBlock();
    tape.KeepCache(2 * width);
  }
  y = tape.LayerNorm(y, width);
  if (head == Head::kLanguageModel) return WordHead(tape, y, width, vocabulary, table);
  tape.SmallLoss(y);
}

}  // namespace vramtrace::estimate
