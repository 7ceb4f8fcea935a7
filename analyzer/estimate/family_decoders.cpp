// The families that are decoders of the Llama kind: what each changes.

#include "analyzer/estimate/family_builders.h"
#include "analyzer/estimate/family_decoder.h"

namespace vramtrace::estimate {
namespace {

Activation ReadActivation(Config& config, std::string_view key, Activation otherwise) {
  const std::string name = config.Text(key);
  if (name.empty()) return otherwise;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu_new" || name == "gelu_fast") return Activation::kGeluComposed;
  if (name.starts_with("gelu")) return Activation::kGelu;
  config.Refuse(key, "'" + name.substr(0, 40) + "' is not an activation that is known: silu, gelu, relu");
  return otherwise;
}

void Finish(DecoderShape shape, Config& config, Tape& tape, Head head) {
  const uint64_t classes = head == Head::kLanguageModel ? 0 : config.Labels();
  if (!config.error()) WriteDecoder(shape, tape, head, classes);
}

void ReadExperts(DecoderShape& shape, Config& config, std::string_view count_key,
                 std::string_view inner_key) {
  constexpr uint64_t kMostExperts = 4096;
  shape.experts = config.Whole(count_key, 1, kMostExperts);
  shape.chosen = config.Whole("num_experts_per_tok", 1, shape.experts);
  shape.expert_inner = config.Whole(inner_key, 1, 4 * kMostWidth);
  shape.sparse_step = config.WholeOr("decoder_sparse_step", 1, 1, kMostLayers);
}

}  // namespace

void BuildLlama(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.activation = ReadActivation(config, "hidden_act", Activation::kSilu);
  if (config.ModelType() == "mistral") shape.qkv_bias = shape.output_bias = shape.mlp_bias = false;
  Finish(shape, config, tape, head);
}

void BuildMixtral(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.qkv_bias = shape.output_bias = false;
  ReadExperts(shape, config, "num_local_experts", "intermediate_size");
  Finish(shape, config, tape, head);
}

void BuildQwen2(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.qkv_bias = true;
  shape.output_bias = false;
  Finish(shape, config, tape, head);
}

void BuildQwen2Moe(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.qkv_bias = config.FlagOr("qkv_bias", true);
  shape.output_bias = false;
  ReadExperts(shape, config, "num_experts", "moe_intermediate_size");
  shape.shared_inner = config.Whole("shared_expert_intermediate_size", 1, 4 * kMostWidth);
  shape.shared_gate = true;
  shape.fp32_expert_weights = false;
  Finish(shape, config, tape, head);
}

void BuildQwen3(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.head_width = config.WholeOr("head_dim", 128, 1, kMostWidth);
  shape.head_norms = true;
  Finish(shape, config, tape, head);
}

void BuildQwen3Moe(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.head_norms = true;
  ReadExperts(shape, config, "num_experts", "moe_intermediate_size");
  shape.fp32_expert_weights = false;
  Finish(shape, config, tape, head);
}

void BuildGemma2(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.head_width = config.WholeOr("head_dim", 256, 1, kMostWidth);
  shape.tied = config.FlagOr("tie_word_embeddings", true);
  shape.one_plus_norm = shape.post_norms = shape.embedding_scale = true;
  shape.activation = Activation::kGelu;
  shape.score_softcap = config.Has("attn_logit_softcapping");
  shape.logit_softcap = config.Has("final_logit_softcapping");
  Finish(shape, config, tape, head);
}

void BuildGemma3(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.head_width = config.WholeOr("head_dim", 256, 1, kMostWidth);
  shape.tied = config.FlagOr("tie_word_embeddings", true);
  shape.one_plus_norm = shape.post_norms = shape.embedding_scale = shape.head_norms = true;
  shape.activation = Activation::kGelu;
  shape.logit_softcap = config.Has("final_logit_softcapping");
  Finish(shape, config, tape, head);
}

void BuildPhi3(Config& config, Tape& tape, Head head) {
  DecoderShape shape = ReadDecoder(config);
  shape.qkv_bias = shape.output_bias = false;
  shape.fused_projections = true;
  Finish(shape, config, tape, head);
}

namespace {

DecoderShape ReadDeepseek(Config& config) {
  DecoderShape shape = ReadDecoder(config);
  shape.latent = true;
  shape.query_rank = config.WholeOr("q_lora_rank", 0, 1, kMostWidth);
  shape.key_value_rank = config.Whole("kv_lora_rank", 1, kMostWidth);
  shape.rope_width = config.Whole("qk_rope_head_dim", 1, kMostWidth);
  shape.nope_width = config.Whole("qk_nope_head_dim", 1, kMostWidth);
  shape.value_width = config.Whole("v_head_dim", 1, kMostWidth);
  ReadExperts(shape, config, "n_routed_experts", "moe_intermediate_size");
  shape.sparse_step = 1;
  shape.first_dense = config.WholeOr("first_k_dense_replace", 0, 0, kMostLayers);
  const uint64_t shared = config.WholeOr("n_shared_experts", 0, 0, 4096);
  shape.shared_inner = shared * shape.expert_inner;
  shape.fp32_router = true;
  return shape;
}

}  // namespace

void BuildDeepseekV2(Config& config, Tape& tape, Head head) {
  Finish(ReadDeepseek(config), config, tape, head);
}

void BuildDeepseekV3(Config& config, Tape& tape, Head head) {
  Finish(ReadDeepseek(config), config, tape, head);
}

}  // namespace vramtrace::estimate
