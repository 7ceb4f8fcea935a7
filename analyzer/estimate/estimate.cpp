#include "analyzer/estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/estimate/states.h"

namespace vramtrace::estimate {
namespace {

TapeOptions TapeOptionsOf(const Request& request) {
  TapeOptions options;
  options.training = request.Trains();
  // Sharded parameters are gathered in 16 bits (FSDP's and ZeRO-3's mixed precision): nothing is cast in the
  // forward.
  const bool gathered =
      request.parameters_on_host || (request.data_parallel > 1 && request.shard == Shard::kParameters);
  const bool fp32_weights = request.precision == Precision::kAutocast && request.Trains();
  options.autocast = fp32_weights && !gathered;
  options.weights = options.autocast ? Dtype::kFp32 : fp32_weights ? Dtype::kBf16 : request.weights;
  options.compute = fp32_weights ? Dtype::kBf16 : request.weights;
  options.attention = request.attention;
  options.batch = request.batch;
  options.sequence = request.sequence;
  options.whole_logits = request.Trains();
  options.chunked_loss = request.chunked_loss;
  options.fused_loss = request.fused_loss;
  options.keep_cache = !request.Trains();
  options.cache_tokens = request.sequence + request.new_tokens;
  if (request.Adapts()) {
    options.base_frozen = true;
    options.quantised = request.method == Method::kQlora;
    options.rank = request.rank;
    options.adapt_mlp = request.targets == "all";
    options.adapt_query_value_only = request.targets == "qv";
    options.adapters = request.adapters;
    options.adapter_dropout = request.adapter_dropout;
    options.inputs_require_grad = request.checkpointing;
  }
  options.tensor_parallel = request.tensor_parallel;
  options.sequence_parallel = request.sequence_parallel;
  return options;
}

WalkOptions WalkOptionsOf(const Request& request, const States& states) {
  WalkOptions options;
  options.checkpointing = request.checkpointing;
  options.layers_per_checkpoint = request.layers_per_checkpoint;
  options.checkpoints_on_host = request.checkpoints_on_host;
  options.step_in_backward = request.step_in_backward;
  options.step_temporary = states.step_bytes_an_element;
  options.gradients_alive = request.accumulation > 1 || request.gradients_zeroed;
  options.gradients = GradientDtype(request);
  options.ways = request.data_parallel;
  options.shards_parameters =
      (request.data_parallel > 1 && request.shard == Shard::kParameters) || request.parameters_on_host;
  options.shards_gradients = request.data_parallel > 1 && request.shard >= Shard::kGradients;
  options.gradients_on_host = request.parameters_on_host;
  return options;
}

// One card's phases, of one stage of the pipeline.
struct CardMemory {
  std::vector<Phase> phases;
  States states;
  uint64_t peak = 0;
};

CardMemory MemoryOf(const Tape& tape, const Request& request, uint64_t in_flight) {
  CardMemory card;
  card.states = StatesOf(tape, request);
  WalkOptions options = WalkOptionsOf(request, card.states);
  options.micro_batches_in_flight = in_flight;
  const Walk walk = WalkTape(tape, options);
  const auto add = [&](const char* name, Memory memory, bool first_step_done) {
    memory[Class::kWeight] += card.states.weights + tape.buffer_bytes();
    memory[Class::kCache] += tape.cache_bytes();
    memory[Class::kUnsharded] += card.states.buckets;
    if (first_step_done) memory[Class::kOptimizer] += card.states.optimizer;
    card.peak = std::max(card.peak, memory.Total());
    card.phases.push_back({name, memory});
  };
  add("load", {}, false);
  add(request.Trains() ? "forward" : "prefill", walk.forward, true);
  if (!request.Trains()) return card;
  add("backward", walk.backward, true);
  Memory step = walk.gradients;
  step[Class::kTemporary] += card.states.step_temporary;
  add("optimizer", step, true);
  return card;
}

// The fullest stage of a pipeline (one forward, one backward in turn: stage i of p keeps p - i
// micro-batches).
trace::Result<CardMemory> FullestStage(const Model& model, const Request& request, Tape& whole) {
  if (request.pipeline == 1) return MemoryOf(whole, request, 1);
  const uint64_t layers = PipelineLayers(model);
  if (layers < request.pipeline) {
    return trace::Error{model.config.file(), std::nullopt,
                        fmt::format("--pp {}: this model has {} layers that a pipeline could be cut through",
                                    request.pipeline, layers)};
  }
  CardMemory fullest;
  for (uint64_t stage = 0; stage < request.pipeline; ++stage) {
    TapeOptions options = TapeOptionsOf(request);
    options.first_layer = static_cast<int>(layers * stage / request.pipeline);
    options.end_layer = static_cast<int>(layers * (stage + 1) / request.pipeline);
    options.first_stage = stage == 0;
    options.last_stage = stage + 1 == request.pipeline;
    const trace::Result<Tape> tape = WriteTape(model, options);
    if (!tape.ok()) return tape.error();
    const uint64_t in_flight = std::min(request.pipeline - stage, request.micro_batches);
    CardMemory card = MemoryOf(tape.value(), request, request.Trains() ? in_flight : 1);
    if (card.peak > fullest.peak) fullest = std::move(card);
  }
  return fullest;
}

// How far the tape may be off, as a share of what is not states. Dry runs of known families agree to 1 % in
// the median (tests/accuracy/estimate); what no dry run has checked gets more.
struct Share {
  double below = 0.03;
  double above = 0.05;

  void Widen(double by_below, double by_above) {
    below = std::max(below, by_below);
    above = std::max(above, by_above);
  }
};

Share TapeShare(const Estimate& estimate) {
  const Request& request = estimate.request;
  Share share;
  if (estimate.family.empty()) share.Widen(0.35, 0.5);
  if (request.method == Method::kQlora) share.Widen(0.10, 0.15);
  if (request.Cards() > 1) share.Widen(0.10, 0.15);
  if (request.chunked_loss || request.fused_loss) share.Widen(0.10, 0.10);
  if (!request.Trains()) share.Widen(0.05, 0.25);
  return share;
}

// The allocator's own share, from dry runs of 16 models (tests/accuracy/estimate): reserved over what was
// asked for.
void AddBands(Estimate& estimate) {
  constexpr double kMebibyte = 1 << 20;
  const Request& request = estimate.request;
  const Memory& peak = estimate.AtPeak();
  const auto total = static_cast<double>(peak.Total());
  const auto states =
      static_cast<double>(peak[Class::kWeight] + peak[Class::kOptimizer] + peak[Class::kGradient]);
  const Share share = TapeShare(estimate);
  const double moving = total - states;
  double states_below = 0;
  double states_above = 0;
  if (estimate.family.empty()) states_below = states_above = 0.1 * states;
  const double low = total - moving * share.below - states_below;
  const double high = total + moving * share.above + states_above;
  const auto whole = [](double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); };
  estimate.allocated = {whole(low), peak.Total(), whole(high)};

  // cuBLAS: 8.125 MiB a handle and stream, 32 MiB from Hopper on (CublasHandlePool.cpp).
  double low_extra = 8 * kMebibyte;
  double extra = 0.03 * total + 100 * kMebibyte;
  double high_extra = 0.08 * total + 300 * kMebibyte;
  if (request.Cards() > 1) {
    // NCCL: 342 to 392 MiB a communicator measured (aiconfigurator, misc.nccl_mem), up to 1.5 GiB after a
    // first barrier.
    low_extra += 342 * kMebibyte;
    extra += 392 * kMebibyte;
    high_extra += 1536 * kMebibyte;
  }
  estimate.used = {whole(low + low_extra), whole(total + extra), whole(high + high_extra)};
}

void AddNotes(Estimate& estimate, const Model& model) {
  const Request& request = estimate.request;
  auto& notes = estimate.notes;
  if (!model.note.empty()) notes.push_back(model.note);
  if (estimate.family.empty()) {
    notes.emplace_back("this model type is not known: taken as a decoder like Llama, hence the wide band");
  }
  if (request.method == Method::kQlora) {
    notes.emplace_back(
        "4-bit kernels have not been checked by a dry run; embeddings, head and norms stay 16-bit "
        "unless --kbit-fp32");
  }
  if (request.optimizer.starts_with("paged")) {
    notes.emplace_back(
        "paged states are counted as on the host: they move to the device only as far as there is room");
  }
  if (request.Cards() > 1) {
    notes.emplace_back(
        "of one card, the fullest; sharding is by formula (ZeRO, Megatron) and not checked by a dry run");
  }
  if (request.Trains() && request.step_in_backward && request.accumulation > 1) {
    notes.emplace_back("an optimizer in the backward cannot accumulate: each micro-batch is a step");
  }
  if (request.Trains()) {
    notes.emplace_back(
        "every batch is taken as this long: lengths that vary leave gaps in the allocator's cache, 10 to "
        "40 % of it in published runs");
  }
  if (request.gradients_zeroed)
    notes.emplace_back("gradients are zeroed, not freed: they live through the forward");
  if (request.accumulation > 1) {
    notes.emplace_back(
        "gradients of earlier micro-batches live through the forward: accumulation saves only what a "
        "smaller batch saves");
  }
}

}  // namespace

std::string CheckRequest(const Request& request) {
  constexpr uint64_t kMostBatch = 1 << 20;
  constexpr uint64_t kMostTokens = uint64_t{1} << 32;
  constexpr uint64_t kMostCards = 1 << 14;
  const auto whole = [](const char* name, uint64_t value, uint64_t most) {
    return value >= 1 && value <= most ? std::string()
                                       : fmt::format("{} takes a whole number from 1 to {}", name, most);
  };
  for (const std::string& wrong :
       {whole("--batch", request.batch, kMostBatch), whole("--seq", request.sequence, 1 << 27),
        whole("--accumulation", request.accumulation, kMostBatch), whole("--rank", request.rank, 1 << 16),
        whole("--galore-rank", request.galore_rank, 1 << 16),
        whole("--dp", request.data_parallel, kMostCards), whole("--tp", request.tensor_parallel, 1024),
        whole("--pp", request.pipeline, 1024), whole("--micro-batches", request.micro_batches, kMostBatch),
        whole("--checkpoint-every", static_cast<uint64_t>(std::max(request.layers_per_checkpoint, 0)),
              4096)}) {
    if (!wrong.empty()) return wrong;
  }
  if (request.batch * request.sequence > kMostTokens || request.new_tokens > (1 << 27)) {
    return "--batch times --seq is above 4 billion tokens, which no card holds";
  }
  if (request.Trains() && FindOptimizer(request.optimizer) == nullptr) {
    std::string names;
    for (const Optimizer& row : Optimizers())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    return fmt::format("--optimizer {}: there are {}", request.optimizer, names);
  }
  if (request.targets != "all" && request.targets != "attention" && request.targets != "qv") {
    return fmt::format("--targets {}: there are all, attention, qv", request.targets);
  }
  if (!(request.adapter_dropout >= 0 && request.adapter_dropout < 1))
    return "--lora-dropout takes a rate from 0 to 1";
  if (request.precision == Precision::kMaster && request.weights == Dtype::kFp32) {
    return "--precision master keeps an FP32 copy of 16-bit weights; with --dtype fp32 there is nothing to "
           "copy";
  }
  if (request.chunked_loss && request.fused_loss) return "--chunked-loss and --fused-loss exclude each other";
  return "";
}

trace::Result<Estimate> MakeEstimate(const Model& model, const Request& request) {
  TapeOptions options = TapeOptionsOf(request);
  trace::Result<Tape> whole = WriteTape(model, options);
  if (!whole.ok()) return whole.error();
  Estimate estimate;
  estimate.model = model.name;
  estimate.family = model.family == nullptr ? "" : std::string(model.family->name);
  estimate.file = model.config.file();
  estimate.request = request;
  estimate.parameters = whole.value().ParameterCount();
  estimate.adapters = whole.value().AdapterCount();
  estimate.trainable = StatesOf(whole.value(), request).trainable;
  trace::Result<CardMemory> card = FullestStage(model, request, whole.value());
  if (!card.ok()) return card.error();
  estimate.phases = std::move(card.value().phases);
  estimate.host_bytes = card.value().states.host;
  for (size_t at = 0; at < estimate.phases.size(); ++at) {
    if (estimate.phases[at].memory.Total() > estimate.AtPeak().Total()) estimate.peak = at;
  }
  // Two operations a parameter and token forward, twice that backward (half of it where weights are frozen),
  // once more forward for checkpointing (arXiv 2001.08361, section 2.1).
  estimate.tokens = static_cast<double>(request.batch) * static_cast<double>(request.sequence);
  const double passes = !request.Trains() ? 1 : (request.Adapts() ? 2 : 3) + (request.checkpointing ? 1 : 0);
  estimate.step_flops = 2 * passes * static_cast<double>(estimate.parameters) * estimate.tokens;
  AddBands(estimate);
  AddNotes(estimate, model);
  return estimate;
}

}  // namespace vramtrace::estimate
