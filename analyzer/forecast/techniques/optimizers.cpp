// Other optimizers. What each keeps and needs for a moment follows from its source; sizes are in bytes of the
// parameter, of one element, and of its shape.

#include <algorithm>
#include <functional>
#include <utility>

#include "analyzer/forecast/techniques/optimizer_edit.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr const char* kNoStep = "no optimizer step was completed";
constexpr const char* kNoParameters = "no trained parameter is named in the trace";

// torch.linalg.vector_norm over a matrix's rows stages partial sums: twice the matrix in single precision.
constexpr uint64_t kNormStaging = 2;
// bitsandbytes: an absmax of 4 bytes a block of 256 elements; smaller tensors keep full states; a table of
// 256 values for each state. Source: bitsandbytes/optim/optimizer.py.
constexpr uint64_t kQuantileBlock = 256;
constexpr uint64_t kLeast8Bit = 4096;
constexpr uint64_t kLeastPaged = 100'000;
constexpr Bytes kQuantileTable = 1024;
constexpr Bytes kFloat = 4;

using Visit = std::function<void(OptimizerEdit&, const OptimizerPlace&, ParameterId)>;

// The recorded optimizer goes; `visit` writes each parameter's part of each step.
Edited Exchange(const Stream& stream, const Visit& visit) {
  OptimizerEdit edit(stream);
  if (edit.places().empty()) return kNoStep;
  if (edit.trained().empty()) return kNoParameters;
  edit.RemoveTemporaries();
  edit.RemoveState();
  for (const OptimizerPlace& at : edit.places()) {
    for (const ParameterId parameter : edit.trained()) visit(edit, at, parameter);
  }
  return std::move(edit).Finish();
}

bool HasOptimizer(const Stream& stream, std::initializer_list<std::string_view> names) {
  return std::any_of(stream.facts.optimizers.begin(), stream.facts.optimizers.end(), [&](const auto& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

Stream Named(Stream stream, std::string_view name) {
  stream.facts.optimizers = {std::string(name)};
  return stream;
}

Edited Named(Edited edited, std::string_view name) {
  if (auto* stream = std::get_if<Stream>(&edited)) return Named(std::move(*stream), name);
  return edited;
}

bool IsAdam(const Stream& stream) { return HasOptimizer(stream, {"Adam", "AdamW"}); }

// How often the last completed step asks for memory that it does not keep.
uint64_t StepTemporaries(const Stream& stream) {
  uint64_t count = 0;
  uint64_t last = 0;
  for (const Event& event : stream.events) {
    if (event.kind == EventKind::kStepEnd) last = std::exchange(count, 0);
    if (event.kind != EventKind::kAllocate) continue;
    const Request& request = stream[event.request];
    const bool kept = request.memory_class == MemoryClass::kOptimizerState;
    if (!kept && stream.SiteOf(request).phase == Phase::kOptimizer) ++count;
  }
  return last;
}

bool HasState(const Stream& stream) {
  return std::any_of(stream.events.begin(), stream.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kAllocate &&
           stream[event.request].memory_class == MemoryClass::kOptimizerState;
  });
}

}  // namespace

// The list has one entry a parameter; without it there are two temporaries a parameter.
bool IsForeachOff(const Stream& stream) {
  const uint64_t count = StepTemporaries(stream);
  return count == 0 || count >= 2 * TrainedParameters(stream).size();
}

// torch/optim/adamw.py, _single_tensor_adamw: the square root, then the quotient, which lives until the next
// parameter's takes its name.
Edited ApplyForeachOff(const Stream& stream, const TechniqueOptions& /*options*/) {
  if (!IsAdam(stream)) return "the optimizer is neither torch.optim.Adam nor AdamW";
  OptimizerEdit edit(stream);
  if (edit.places().empty()) return kNoStep;
  if (edit.trained().empty()) return kNoParameters;
  edit.RemoveTemporaries();
  for (const OptimizerPlace& at : edit.places()) {
    RequestId before = RequestId::kNone;
    for (const ParameterId id : edit.trained()) {
      const Bytes bytes = stream[id].bytes;
      const RequestId root = edit.Take(at, bytes);
      const RequestId quotient = edit.Take(at, bytes);
      edit.Give(at, root);
      if (before != RequestId::kNone) edit.Give(at, before);
      before = quotient;
    }
    if (before != RequestId::kNone) edit.Give(at, before);
  }
  return std::move(edit).Finish();
}

bool IsFused(const Stream& stream) { return IsAdam(stream) && StepTemporaries(stream) == 0; }

// One kernel for all parameters; the step count lies on the device.
Edited ApplyFused(const Stream& stream, const TechniqueOptions& /*options*/) {
  if (!IsAdam(stream)) return "the optimizer is neither torch.optim.Adam nor AdamW";
  OptimizerEdit edit(stream);
  if (edit.places().empty()) return kNoStep;
  edit.RemoveTemporaries();
  for (const ParameterId id : edit.trained()) edit.AddState(edit.places().front(), id, kFloat, "step");
  return std::move(edit).Finish();
}

bool IsSgd(const Stream& stream) { return HasOptimizer(stream, {"SGD"}) && !HasState(stream); }

Edited ApplySgd(const Stream& stream, const TechniqueOptions& /*options*/) {
  return Named(Exchange(stream, [](OptimizerEdit&, const OptimizerPlace&, ParameterId) {}), "SGD");
}

bool IsAdafactor(const Stream& stream) { return HasOptimizer(stream, {"Adafactor"}); }

// torch/optim/_adafactor.py, one tensor at a time: sums of squares of rows and columns are kept.
Edited ApplyAdafactor(const Stream& stream, const TechniqueOptions& /*options*/) {
  std::vector<RequestId> held;  // local variables of the parameter before
  const auto visit = [&](OptimizerEdit& edit, const OptimizerPlace& at, ParameterId id) {
    const Parameter& parameter = edit.stream()[id];
    const size_t dimensions = parameter.shape.size();
    const bool matrix = dimensions > 1 && parameter.elements() > 0;
    const auto side = [&](size_t from_end) {
      return static_cast<Bytes>(std::max<int64_t>(1, parameter.shape[dimensions - from_end]));
    };
    const Bytes rows = matrix ? parameter.bytes / side(1) : 0;
    const Bytes columns = matrix ? parameter.bytes / side(2) : 0;
    if (at.first && matrix) {
      edit.AddState(at, id, rows, "row_var");
      edit.AddState(at, id, columns, "col_var");
    } else if (at.first) {
      edit.AddState(at, id, parameter.bytes, "variance");
    }
    std::vector<RequestId> locals;
    if (matrix) {
      locals = {edit.Take(at, rows), edit.Take(at, columns)};
      edit.Give(at, edit.Take(at, kNormStaging * parameter.elements() * kFloat));
    } else {
      locals = {edit.Take(at, parameter.bytes)};
    }
    locals.push_back(edit.Take(at, parameter.bytes));
    for (const RequestId local : held) edit.Give(at, local);
    held = locals;
    if (id == edit.trained().back()) {
      for (const RequestId local : held) edit.Give(at, local);
      held.clear();
    }
  };
  return Named(Exchange(stream, visit), "Adafactor");
}

namespace {

Edited Apply8Bit(const Stream& stream, bool paged) {
  const auto visit = [paged](OptimizerEdit& edit, const OptimizerPlace& at, ParameterId id) {
    if (!at.first) return;
    const uint64_t elements = edit.stream()[id].elements();
    if (id == edit.trained().front()) {
      edit.AddState(at, id, kQuantileTable, "qmap1");
      edit.AddState(at, id, kQuantileTable, "qmap2");
    }
    const bool small = elements < kLeast8Bit;
    const Bytes bytes = small ? elements * kFloat : elements;
    // Managed memory is none of the caching allocator's.
    const bool managed = paged && elements >= kLeastPaged;
    for (const char* key : {"state1", "state2"}) {
      if (!managed) edit.AddState(at, id, bytes, key);
    }
    for (const char* key : {"absmax1", "absmax2"}) {
      const Bytes blocks = (elements + kQuantileBlock - 1) / kQuantileBlock;
      if (!small) edit.AddState(at, id, blocks * kFloat, key);
    }
  };
  return Named(Exchange(stream, visit), paged ? "PagedAdamW8bit" : "AdamW8bit");
}

}  // namespace

bool Is8Bit(const Stream& stream) {
  return HasOptimizer(stream, {"AdamW8bit", "Adam8bit", "PagedAdamW8bit", "PagedAdam8bit"});
}
Edited Apply8BitAdam(const Stream& stream, const TechniqueOptions& /*options*/) {
  return Apply8Bit(stream, false);
}

bool IsPaged8Bit(const Stream& stream) { return HasOptimizer(stream, {"PagedAdamW8bit", "PagedAdam8bit"}); }
Edited ApplyPaged8Bit(const Stream& stream, const TechniqueOptions& /*options*/) {
  return Apply8Bit(stream, true);
}

bool IsLion(const Stream& stream) { return HasOptimizer(stream, {"Lion"}); }

// arXiv 2302.06675: one moment; the update is a copy of it and a sum, one parameter at a time.
Edited ApplyLion(const Stream& stream, const TechniqueOptions& /*options*/) {
  const auto visit = [](OptimizerEdit& edit, const OptimizerPlace& at, ParameterId id) {
    const Bytes bytes = edit.stream()[id].bytes;
    if (at.first) edit.AddState(at, id, bytes, "exp_avg");
    const RequestId copy = edit.Take(at, bytes);
    const RequestId sum = edit.Take(at, bytes);
    edit.Give(at, copy);
    edit.Give(at, sum);
  };
  return Named(Exchange(stream, visit), "Lion");
}

bool IsInBackward(const Stream& stream) {
  return std::any_of(stream.sites.begin(), stream.sites.end(), [](const Site& site) {
    return site.phase == Phase::kOptimizer && site.operator_name == "AccumulateGrad";
  });
}

// Tensor.register_post_accumulate_grad_hook: as soon as a gradient is there its parameter is updated, and it
// goes. The step's temporaries are those of one parameter.
Edited ApplyInBackward(const Stream& stream, const TechniqueOptions& /*options*/) {
  OptimizerEdit edit(stream);
  if (edit.places().empty()) return kNoStep;
  const bool foreach_list = !IsFused(stream) && StepTemporaries(stream) > 0;
  const bool has_state = HasState(stream);
  // State that a parameter has, by parameter: made where its first gradient is.
  std::vector<std::vector<RequestId>> states(stream.parameters.size());
  for (const Event& event : stream.events) {
    if (event.kind != EventKind::kAllocate) continue;
    const Request& request = stream[event.request];
    const bool state = request.memory_class == MemoryClass::kOptimizerState;
    if (state && request.parameter != ParameterId::kNone &&
        stream.SiteOf(request).phase == Phase::kOptimizer) {
      states[static_cast<size_t>(request.parameter)].push_back(event.request);
    }
  }
  edit.RemoveTemporaries();
  uint64_t gradients = 0;
  for (uint32_t i = 0; i < stream.events.size(); ++i) {
    const Event& event = stream.events[i];
    if (event.kind != EventKind::kAllocate) continue;
    const Request& request = stream[event.request];
    if (request.memory_class != MemoryClass::kGradient || request.parameter == ParameterId::kNone) continue;
    if (event.phase != Phase::kBackward) continue;
    // The node's own frees come before its gradients are accumulated.
    uint32_t place = i + 1;
    while (place < stream.events.size() && stream.events[place].kind == EventKind::kAllocate &&
           stream[stream.events[place].request].autograd_number == request.autograd_number) {
      ++place;
    }
    while (place < stream.events.size() && stream.events[place].kind == EventKind::kFree) ++place;
    const OptimizerPlace at{request.step, place, false};
    for (const RequestId id : states[static_cast<size_t>(request.parameter)]) {
      edit.edit().Remove(id);
      edit.AddState(at, request.parameter, stream[id].bytes, stream.state_keys[stream[id].state_key]);
    }
    states[static_cast<size_t>(request.parameter)].clear();
    if (foreach_list && has_state) edit.Give(at, edit.Take(at, request.bytes));
    edit.edit().FreeBefore(event.request, place);
    ++gradients;
  }
  if (gradients == 0) return "no gradient is named in the trace";
  return std::move(edit).Finish();
}

}  // namespace vramtrace::forecast
