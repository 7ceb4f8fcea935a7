#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "analyzer/cli/gpus_cost_options.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/estimate/estimate.h"
#include "analyzer/estimate/estimate_text.h"
#include "analyzer/estimate/safetensors.h"
#include "analyzer/estimate/sizes.h"
#include "analyzer/estimate/states.h"
#include "analyzer/estimate/techniques.h"
#include "analyzer/gpus/cost_text.h"
#include "analyzer/report/units.h"

namespace vramtrace::cli {
namespace {

using estimate::Request;

template <typename T>
CLI::CheckedTransformer OneOf(const std::map<std::string, T>& names) {
  return CLI::CheckedTransformer(names, CLI::ignore_case);
}

int SayBadInput(const trace::Error& error) {
  fmt::print(stderr, "vramtrace: {}\n", error.Sentence());
  return kBadInput;
}

int SayUsage(const std::string& message) {
  fmt::print(stderr, "vramtrace: {}\n", message);
  return kUsage;
}

class EstimateCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "estimate"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Estimate a model's memory from its config.json or size, and the cards that hold it";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace estimate 7b --method qlora --batch 1 --seq 2048 --checkpointing";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("model", model_, "config.json, a folder with one, or a size such as 7b")->required();
    app.add_option("--format", format_, "text or json")->check(CLI::IsMember({"text", "json"}));
    app.add_option("--gpu", gpu_, "Judge this card: exit status 1 when the job does not fit it");
    AddMethod(app);
    AddTechniques(app);
    AddCards(app);
    cost_.AddOptions(app);
  }

  [[nodiscard]] int Run() override {
    request_.method = method_;
    if (std::string wrong = ReadOffload(); !wrong.empty()) return SayUsage(wrong);
    if (std::string wrong = estimate::CheckRequest(request_); !wrong.empty()) return SayUsage(wrong);
    const catalogue::Gpu* gpu = gpu_.empty() ? nullptr : catalogue::FindGpu(gpu_);
    if (!gpu_.empty() && gpu == nullptr) return SayUsage(catalogue::UnknownGpuMessage(gpu_));
    trace::Result<gpus::CostOptions> money = cost_.Options();
    if (!money.ok()) return SayCostError(money.error());
    trace::Result<gpus::PriceTable> prices = cost_.Prices();
    if (!prices.ok()) return SayCostError(prices.error());
    if (!(train_tokens_ >= 0 && train_tokens_ <= 1e18))
      return SayUsage("--train-tokens takes a number of at least 0");

    trace::Result<estimate::Model> model = ReadModel();
    if (!model.ok()) return SayBadInput(model.error());
    trace::Result<estimate::Estimate> result = estimate::MakeEstimate(model.value(), request_);
    if (!result.ok()) return SayBadInput(result.error());
    if (trace::Result<bool> stored = CompareWithFiles(result.value()); !stored.ok()) {
      return SayBadInput(stored.error());
    }
    gpus::CostOptions options = money.value();
    if (train_tokens_ > 0 && options.hours == 0 && result.value().tokens > 0) {
      options.flops = result.value().step_flops / result.value().tokens * train_tokens_;
    }
    if (request_.weights == estimate::Dtype::kFp32 && request_.precision == estimate::Precision::kPure) {
      options.arithmetic = gpus::Arithmetic::kFp32;
    }
    const gpus::CardTable cards =
        gpus::RankCards(estimate::Needs(model.value(), result.value()), options, std::move(prices.value()));
    Print(model.value(), result.value(), cards);
    return gpu == nullptr ? kDone : Judge(*gpu, cards);
  }

 private:
  void AddMethod(CLI::App& app) {
    using estimate::Dtype;
    using estimate::Method;
    using estimate::Precision;
    app.add_option("--method", method_, "inference, full, lora or qlora")
        ->transform(OneOf<Method>({{"inference", Method::kInference},
                                   {"full", Method::kFull},
                                   {"lora", Method::kLora},
                                   {"qlora", Method::kQlora}}));
    app.add_option("--batch", request_.batch, "Sequences, or pictures, of one card and step")
        ->capture_default_str();
    app.add_option("--seq", request_.sequence, "Tokens a sequence")->capture_default_str();
    app.add_option("--new-tokens", request_.new_tokens, "Inference: tokens generated after them");
    app.add_option("--dtype", request_.weights, "Of weights: bf16 or fp32")
        ->transform(OneOf<Dtype>({{"bf16", Dtype::kBf16}, {"fp16", Dtype::kBf16}, {"fp32", Dtype::kFp32}}));
    app.add_option("--precision", request_.precision,
                   "pure, autocast (FP32 weights) or master (BF16 and an FP32 copy)")
        ->transform(OneOf<Precision>({{"pure", Precision::kPure},
                                      {"autocast", Precision::kAutocast},
                                      {"master", Precision::kMaster}}));
    app.add_option("--rank", request_.rank, "Of the adapters")->capture_default_str();
    app.add_option("--targets", request_.targets, "Layers with adapters: all, attention or qv")
        ->capture_default_str();
    app.add_option("--adapters", request_.adapters, "Their type: fp32 (peft's default) or bf16")
        ->transform(OneOf<Dtype>({{"bf16", Dtype::kBf16}, {"fp32", Dtype::kFp32}}));
    app.add_option("--lora-dropout", request_.adapter_dropout, "Its rate");
    app.add_flag("--kbit-fp32", request_.rest_in_fp32, "QLoRA: what is not quantised is FP32");
    app.add_flag("!--no-double-quant", request_.double_quantised, "QLoRA: 4.5 bits a weight instead of 4.13");
  }

  void AddTechniques(CLI::App& app) {
    using estimate::AttentionKind;
    std::vector<std::string> optimizers;
    for (const estimate::Optimizer& row : estimate::Optimizers()) optimizers.emplace_back(row.name);
    app.add_option("--optimizer", request_.optimizer, "What steps")
        ->check(CLI::IsMember(optimizers))
        ->capture_default_str();
    app.add_option("--attention", request_.attention, "fused (SDPA, FlashAttention) or eager")
        ->transform(OneOf<AttentionKind>({{"fused", AttentionKind::kFused},
                                          {"flash", AttentionKind::kFused},
                                          {"sdpa", AttentionKind::kFused},
                                          {"eager", AttentionKind::kEager}}));
    app.add_flag("--checkpointing", request_.checkpointing, "Activation checkpointing, each layer");
    app.add_option("--checkpoint-every", request_.layers_per_checkpoint, "Layers a checkpoint")
        ->capture_default_str();
    app.add_option("--accumulation", request_.accumulation, "Micro-batches a step")->capture_default_str();
    app.add_flag("--zeroed-gradients", request_.gradients_zeroed, "zero_grad(set_to_none=False)");
    app.add_flag("--in-backward", request_.step_in_backward, "The optimizer steps in the backward");
    app.add_flag("!--no-foreach", request_.foreach, "The optimizer works tensor by tensor");
    app.add_flag("--chunked-loss", request_.chunked_loss, "Cross entropy in eight pieces");
    app.add_flag("--fused-loss", request_.fused_loss, "Head and cross entropy in one kernel");
    app.add_option("--galore-rank", request_.galore_rank, "Of GaLore's projections")->capture_default_str();
    app.add_option("--offload", offload_, "To the host: optimizer, parameters, checkpoints; may be repeated");
  }

  void AddCards(CLI::App& app) {
    using estimate::Shard;
    app.add_option("--dp", request_.data_parallel, "Cards that share the batch")->capture_default_str();
    app.add_option("--shard", request_.shard, "What they share: ddp (nothing), zero1, zero2, zero3 or fsdp")
        ->transform(OneOf<Shard>({{"ddp", Shard::kNothing},
                                  {"zero1", Shard::kOptimizer},
                                  {"zero2", Shard::kGradients},
                                  {"zero3", Shard::kParameters},
                                  {"fsdp", Shard::kParameters}}));
    app.add_flag("--bucket-views", request_.bucket_views, "DDP's gradient_as_bucket_view");
    app.add_option("--tp", request_.tensor_parallel, "Tensor parallel size")->capture_default_str();
    app.add_flag("--sp", request_.sequence_parallel, "Sequence parallel, with --tp");
    app.add_option("--pp", request_.pipeline, "Pipeline stages")->capture_default_str();
    app.add_option("--micro-batches", request_.micro_batches, "Of a pipeline's step")->capture_default_str();
    app.add_option("--train-tokens", train_tokens_,
                   "Tokens of the whole job: hours and cost are estimated from them");
  }

  std::string ReadOffload() {
    for (const std::string& what : offload_) {
      if (what == "optimizer") {
        request_.optimizer_on_host = true;
      } else if (what == "parameters") {
        request_.parameters_on_host = true;
      } else if (what == "checkpoints") {
        request_.checkpointing = request_.checkpoints_on_host = true;
      } else {
        return fmt::format("--offload {}: there are optimizer, parameters, checkpoints", what);
      }
    }
    return "";
  }

  [[nodiscard]] trace::Result<estimate::Model> ReadModel() const {
    if (estimate::IsSize(model_)) return estimate::ModelOfSize(model_);
    trace::Result<estimate::Config> config = estimate::Config::Load(model_);
    if (!config.ok()) return config.error();
    return estimate::Recognise(std::move(config.value()));
  }

  // The weights that lie beside the config are the model's own word on its size.
  [[nodiscard]] trace::Result<bool> CompareWithFiles(estimate::Estimate& result) const {
    if (estimate::IsSize(model_)) return true;
    trace::Result<std::optional<estimate::StoredTensors>> stored = estimate::TensorsBeside(result.file);
    if (!stored.ok()) return stored.error();
    if (!stored.value()) return true;
    const estimate::StoredTensors& tensors = *stored.value();
    std::string types;
    for (const auto& [dtype, bytes] : tensors.bytes_by_dtype) {
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", dtype, report::Size(bytes));
    }
    std::string note = fmt::format("the weight files hold {} elements in {} ({})",
                                   report::Grouped(tensors.elements), report::Size(tensors.bytes), types);
    if (tensors.elements != result.parameters) {
      note += fmt::format(
          "; the config makes {}: buffers, tied copies or quantised weights account for such a "
          "difference, or the config is not theirs",
          report::Grouped(result.parameters));
    }
    result.notes.push_back(std::move(note));
    return true;
  }

  void Print(const estimate::Model& model, const estimate::Estimate& result,
             const gpus::CardTable& cards) const {
    const std::vector<estimate::Change> changes = estimate::Changes(model, result);
    if (format_ == "json") {
      nlohmann::ordered_json json = estimate::EstimateJson(result, changes);
      json["gpus"] = gpus::CardsJson(cards);
      fmt::print("{}\n", json.dump(2));
      return;
    }
    constexpr size_t kLines = 8;
    fmt::print("{}\n{}", estimate::EstimateText(result, changes), gpus::CardsText(cards, kLines));
  }

  [[nodiscard]] int Judge(const catalogue::Gpu& gpu, const gpus::CardTable& cards) const {
    const auto wanted = static_cast<int>(request_.Cards());
    for (const gpus::CardRow& row : cards.rows) {
      if (row.gpu != &gpu || row.cards != wanted) continue;
      const std::string line =
          fmt::format("{}: {}. It needs {} ({} to {}) with the context, the card has {}.", gpu.id,
                      gpus::FitText(row.fit), report::Size(row.used.expected), report::Size(row.used.low),
                      report::Size(row.used.high), report::Size(row.total));
      fmt::print(format_ == "json" ? stderr : stdout, "{}\n", line);
      return row.fit == gpus::Fit::kFits ? kDone : kCheckFailed;
    }
    return SayUsage(fmt::format("the memory of {} is not known", gpu.id));
  }

  std::string model_;
  std::string format_ = "text";
  std::string gpu_;
  std::vector<std::string> offload_;
  estimate::Method method_ = estimate::Method::kFull;
  Request request_;
  double train_tokens_ = 0;
  CostFlags cost_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeEstimateCommand() { return std::make_unique<EstimateCommand>(); }

}  // namespace vramtrace::cli
