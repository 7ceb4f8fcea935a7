#pragma once
// What decoders of the Llama kind differ in. One function writes them all.

#include "analyzer/estimate/config.h"
#include "analyzer/estimate/families.h"
#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

struct DecoderShape {
  uint64_t width = 0;
  uint64_t inner = 0;
  uint64_t layers = 0;
  uint64_t heads = 0;
  uint64_t key_value_heads = 0;
  uint64_t head_width = 0;
  uint64_t vocabulary = 0;
  bool tied = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool head_norms = false;         // Qwen 3, Gemma 3: an RMSNorm over each head's queries and keys
  bool fused_projections = false;  // Phi-3: one product for queries, keys and values, one for gate and up
  bool one_plus_norm = false;      // Gemma
  bool post_norms = false;         // Gemma: also after attention and after the MLP
  bool score_softcap = false;      // Gemma 2: attention must be eager
  bool logit_softcap = false;
  bool embedding_scale = false;  // Gemma
  Activation activation = Activation::kSilu;

  uint64_t experts = 0;  // 0: dense
  uint64_t chosen = 0;
  uint64_t expert_inner = 0;
  uint64_t shared_inner = 0;  // one more MLP that every token goes through
  bool shared_gate = false;   // Qwen 2 MoE: times a sigmoid
  bool fp32_expert_weights = true;
  bool fp32_router = false;
  uint64_t first_dense = 0;  // layers before the first with experts
  uint64_t sparse_step = 1;

  bool latent = false;  // DeepSeek: multi-head latent attention
  uint64_t query_rank = 0;
  uint64_t key_value_rank = 0;
  uint64_t rope_width = 0;
  uint64_t nope_width = 0;
  uint64_t value_width = 0;
};

// The fields that all of them have, under their usual names.
[[nodiscard]] DecoderShape ReadDecoder(Config& config);

void WriteDecoder(const DecoderShape& shape, Tape& tape, Head head, uint64_t classes);

}  // namespace vramtrace::estimate
