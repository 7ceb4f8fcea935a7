#include "tests/support/training_run.h"

#include <algorithm>

namespace vramtrace::testing {
namespace {

constexpr uint64_t kSegment = 64 << 20;
constexpr uint64_t kRoot = 0x1000;
constexpr char kModuleFile[] = "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
constexpr char kModelFile[] = "/home/user/model.py";
constexpr char kScript[] = "/home/user/train.py";
constexpr char kOptimizerFile[] = "/venv/lib/python3.11/site-packages/torch/optim/optimizer.py";
constexpr char kLinearNode[] = "N5torch8autograd9generated14AddmmBackward0E";

uint64_t Round(uint64_t bytes) { return (bytes + 511) / 512 * 512; }
uint64_t LayerObject(int layer) { return kRoot + 0x100 * static_cast<uint64_t>(layer + 1); }

}  // namespace

TrainingRun::TrainingRun(const TrainingOptions& options) : options_(options) {}

void TrainingRun::Query(v1::MemoryQuery::Reason reason) {
  builder_->Query(options_.total_bytes - options_.context_bytes - reserved_, options_.total_bytes, reason);
}

TrainingRun::Place TrainingRun::Allocate(uint64_t requested, uint32_t stack, const Autograd& autograd) {
  const uint64_t bytes = Round(requested);
  auto hole =
      std::find_if(free_.begin(), free_.end(), [&](const auto& entry) { return entry.second >= bytes; });
  if (hole == free_.end()) {
    const uint64_t segment = std::max(kSegment, (bytes + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    builder_->DriverAllocate(next_segment_, segment);
    reserved_ += segment;
    Query(v1::MemoryQuery::REASON_DRIVER_ALLOCATE);
    hole = free_.emplace(next_segment_, segment).first;
    next_segment_ += segment + (2 << 20);
  }
  const Place place{hole->first, bytes};
  if (hole->second > bytes) free_.emplace(hole->first + bytes, hole->second - bytes);
  free_.erase(hole);
  allocated_ += bytes;
  builder_->Allocate({.address = place.address,
                      .bytes = bytes,
                      .requested = requested,
                      .stack = stack,
                      .autograd = autograd,
                      .allocated_total = allocated_,
                      .reserved_total = reserved_});
  return place;
}

void TrainingRun::Free(Place* place, uint32_t stack, const Autograd& autograd) {
  if (place->bytes == 0) return;
  allocated_ -= place->bytes;
  builder_->Free({.address = place->address,
                  .stack = stack,
                  .autograd = autograd,
                  .allocated_total = allocated_,
                  .reserved_total = reserved_});
  auto hole = free_.emplace(place->address, place->bytes).first;
  if (const auto next = std::next(hole); next != free_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole != free_.begin()) {
    const auto before = std::prev(hole);
    if (before->first + before->second == hole->first) {
      before->second += hole->second;
      free_.erase(hole);
    }
  }
  *place = {};
}

uint32_t TrainingRun::ModuleStack(int layer, const char* function) {
  return builder_->Stack({{kScript, 20, "main"},
                          {kModuleFile, 1775, "Module._wrapped_call_impl", kRoot},
                          {kModelFile, 12, "Network.forward"},
                          {kModuleFile, 1775, "Module._wrapped_call_impl", LayerObject(layer)},
                          {kModelFile, static_cast<uint32_t>(30 + layer), function}});
}

void TrainingRun::Prologue() {
  v1::Process process;
  process.set_pid(4711);
  process.add_argument("python");
  process.add_argument("train.py");
  process.set_python_version("3.11.7");
  process.set_torch_version("2.15.0");
  process.set_writer_version("0.1.0");
  process.set_simulated(true);
  builder_->AddProcess(process);
  v1::Device device;
  device.set_name("NVIDIA Test GPU");
  device.set_total_bytes(options_.total_bytes);
  device.set_compute_major(8);
  builder_->AddDevice(device);
  builder_->Module(kRoot, "", "Network");
  for (int layer = 0; layer < options_.layers; ++layer) {
    builder_->Module(LayerObject(layer), "layers." + std::to_string(layer), "Linear", kRoot);
  }
}

void TrainingRun::Load() {
  Query(v1::MemoryQuery::REASON_CONTEXT);
  const uint32_t stack = builder_->Stack({{kScript, 8, "main"}, {kModuleFile, 900, "Module._apply"}});
  for (int layer = 0; layer < options_.layers; ++layer) {
    Parameter parameter;
    parameter.name = "layers." + std::to_string(layer) + ".weight";
    parameter.weight = Allocate(options_.weight_bytes, stack);
    if (options_.labels) {
      builder_->Label(v1::Label::KIND_PARAMETER, parameter.weight.address, options_.weight_bytes,
                      parameter.name);
    }
    parameters_.push_back(parameter);
  }
}

void TrainingRun::Refuse(uint64_t bytes, uint32_t stack) {
  builder_->DriverAllocate(0, bytes, "libc10_cuda.so", 2);
  Query(v1::MemoryQuery::REASON_OUT_OF_MEMORY);
  builder_->OutOfMemory({.bytes = bytes,
                         .stack = stack,
                         .autograd = {.sequence_number = autograd_number_, .operator_name = {}},
                         .allocated_total = allocated_,
                         .reserved_total = reserved_});
}

bool TrainingRun::Forward(int step) {
  const uint32_t script = builder_->Stack({{kScript, 18, "main"}});
  input_ = Allocate(options_.input_bytes, script, {.sequence_number = autograd_number_, .operator_name = {}});
  builder_->Input("input_ids", input_.address, options_.input_bytes, {options_.batch, 512},
                  static_cast<uint64_t>(step));
  node_of_layer_.clear();
  saved_.clear();
  for (int layer = 0; layer < options_.layers; ++layer) {
    const uint32_t stack = ModuleStack(layer, "Layer.forward");
    node_of_layer_.push_back(autograd_number_);
    ++autograd_number_;  // the node is made before its kernel allocates
    const Autograd position{.sequence_number = autograd_number_, .operator_name = {}};
    if (layer == options_.fail_at_layer && step == options_.fail_at_step) {
      Refuse(options_.total_bytes, stack);
      return false;
    }
    saved_.push_back(Allocate(options_.activation_bytes, stack, position));
    Place temporary = Allocate(options_.temporary_bytes, ModuleStack(layer, "Layer.scratch"), position);
    Free(&temporary, stack, position);
  }
  output_ = Allocate(options_.activation_bytes / 2, ModuleStack(options_.layers - 1, "Layer.head"),
                     {.sequence_number = autograd_number_, .operator_name = {}});
  return true;
}

void TrainingRun::Backward() {
  builder_->SetThread(2);
  for (int layer = options_.layers - 1; layer >= 0; --layer) {
    const auto index = static_cast<size_t>(layer);
    const Autograd node{node_of_layer_[index], kLinearNode, 1};
    Place scratch = Allocate(options_.temporary_bytes, 0, node);
    parameters_[index].gradient = Allocate(options_.weight_bytes, 0, node);
    Free(&scratch, 0, node);
    Free(&saved_[index], 0, node);
  }
  builder_->SetThread(1);
}

void TrainingRun::OptimizerStep(int step) {
  const uint32_t stack =
      builder_->Stack({{kScript, 24, "main"},
                       {kOptimizerFile, 480, "Optimizer.profile_hook_step.<locals>.wrapper"},
                       {"/venv/lib/python3.11/site-packages/torch/optim/adamw.py", 60, "AdamW.step"}});
  builder_->Step(static_cast<uint64_t>(step), false);
  if (options_.labels) {
    for (const Parameter& parameter : parameters_) {
      builder_->Label(v1::Label::KIND_GRADIENT, parameter.gradient.address, options_.weight_bytes,
                      parameter.name);
    }
  }
  if (step == 0) {
    for (Parameter& parameter : parameters_) {
      parameter.first_moment = Allocate(options_.weight_bytes, stack);
      parameter.second_moment = Allocate(options_.weight_bytes, stack);
    }
  }
  Place scratch = Allocate(options_.weight_bytes, stack);
  Free(&scratch, stack);
  if (options_.labels) {
    for (const Parameter& parameter : parameters_) {
      builder_->Label(v1::Label::KIND_OPTIMIZER_STATE, parameter.first_moment.address, options_.weight_bytes,
                      parameter.name, "exp_avg");
      builder_->Label(v1::Label::KIND_OPTIMIZER_STATE, parameter.second_moment.address, options_.weight_bytes,
                      parameter.name, "exp_avg_sq");
    }
  }
  builder_->Step(static_cast<uint64_t>(step), true);
}

void TrainingRun::ZeroGradients() {
  const uint32_t stack =
      builder_->Stack({{kScript, 25, "main"}, {kOptimizerFile, 900, "Optimizer.zero_grad"}});
  for (Parameter& parameter : parameters_) Free(&parameter.gradient, stack);
}

void TrainingRun::Step(int step) {
  Backward();
  OptimizerStep(step);
  ZeroGradients();
  const uint32_t script = builder_->Stack({{kScript, 26, "main"}});
  Free(&output_, script);
  Free(&input_, script);
}

void TrainingRun::Play(TraceBuilder* builder) {
  builder_ = builder;
  Prologue();
  Load();
  for (int step = 0; step < options_.steps; ++step) {
    if (Forward(step)) {
      Step(step);
      continue;
    }
    // The exception unwinds: what the forward held is let go.
    const uint32_t script = builder_->Stack({{kScript, 20, "main"}});
    for (Place& place : saved_) Free(&place, script);
    Free(&input_, script);
    return builder_->AddTrailer();
  }
  Query(v1::MemoryQuery::REASON_EXIT);
  builder_->AddTrailer();
}

}  // namespace vramtrace::testing
