#pragma once
// What the user wants to do with the model: the method and every technique, as `vramtrace estimate` takes
// them.

#include <cstdint>
#include <string>

#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

enum class Method : uint8_t { kInference, kFull, kLora, kQlora };

enum class Precision : uint8_t {
  kPure,      // weights, gradients and states in one type
  kAutocast,  // FP32 weights, 16-bit copies of them while a step runs (torch.autocast)
  kMaster,  // 16-bit weights and gradients, FP32 copy of the weights with the optimizer (DeepSpeed, Megatron)
};

// What data-parallel cards share (ZeRO, arXiv 1910.02054; FSDP's full shard is kParameters).
enum class Shard : uint8_t { kNothing, kOptimizer, kGradients, kParameters };

struct Request {
  Method method = Method::kFull;
  uint64_t batch = 1;  // of one card
  uint64_t sequence = 2048;
  uint64_t new_tokens = 0;  // generation, after `sequence`

  Dtype weights = Dtype::kBf16;  // under kAutocast they are FP32
  Precision precision = Precision::kPure;
  std::string optimizer = "adamw";
  AttentionKind attention = AttentionKind::kFused;
  bool checkpointing = false;
  int layers_per_checkpoint = 1;
  bool chunked_loss = false;
  bool fused_loss = false;
  uint64_t accumulation = 1;
  bool gradients_zeroed = false;  // zero_grad(set_to_none=False)
  bool step_in_backward = false;
  bool foreach = true;

  uint64_t rank = 16;
  std::string targets = "all";  // all, attention, qv
  Dtype adapters = Dtype::kFp32;
  double adapter_dropout = 0;
  bool double_quantised = true;
  bool rest_in_fp32 = false;  // prepare_model_for_kbit_training: what is not quantised becomes FP32

  uint64_t galore_rank = 128;

  bool optimizer_on_host = false;
  bool parameters_on_host = false;
  bool checkpoints_on_host = false;

  uint64_t data_parallel = 1;
  Shard shard = Shard::kParameters;  // where data_parallel > 1
  bool bucket_views = false;         // DDP's gradient_as_bucket_view
  uint64_t tensor_parallel = 1;
  bool sequence_parallel = false;
  uint64_t pipeline = 1;
  uint64_t micro_batches = 1;  // of a pipeline's step

  [[nodiscard]] uint64_t Cards() const { return data_parallel * tensor_parallel * pipeline; }
  [[nodiscard]] bool Trains() const { return method != Method::kInference; }
  [[nodiscard]] bool Adapts() const { return method == Method::kLora || method == Method::kQlora; }
};

// A sentence where the request contradicts itself or is out of range; empty when it is good.
[[nodiscard]] std::string CheckRequest(const Request& request);

}  // namespace vramtrace::estimate
