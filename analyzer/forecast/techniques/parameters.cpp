#include "analyzer/forecast/techniques/parameters.h"

#include <algorithm>

#include "analyzer/forecast/reductions.h"

namespace vramtrace::forecast {
namespace {

bool IsEmbedding(std::string_view operator_name) { return operator_name.starts_with("Embedding"); }

class Freezer {
 public:
  Freezer(const Graph& graph, const std::set<std::string>& kept, const std::set<std::string>& adapted,
          const std::set<std::string>& reading, Edit* edit)
      : graph_(graph),
        stream_(graph.stream()),
        kept_(kept),
        adapted_(adapted),
        reading_(reading),
        edit_(edit) {
    for (const Parameter& parameter : stream_.parameters) {
      (kept.contains(parameter.name) ? trained_modules_ : frozen_modules_).insert(parameter.module_path);
    }
    FindFirstNodes();
  }

  void Run() {
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      const Request& request = stream_.requests[i];
      const bool frozen =
          request.parameter == ParameterId::kNone || !kept_.contains(stream_[request.parameter].name);
      if (request.memory_class == MemoryClass::kGradient && frozen) RemoveGradient(RequestId{i});
    }
    for (const auto& [number, node] : graph_.nodes()) {
      const bool above = number < FirstNodeOf(number);
      const bool weightless = IsEmbedding(node.operator_name) && IsFrozenModule(node);
      if (above || weightless) {
        for (const RequestId id : node.backward) edit_->Remove(id);
      }
      if (IsProduct(node.operator_name) && IsFrozenModule(node)) RemoveUnnamedGradient(node);
      const bool product = IsProduct(node.operator_name) && IsFrozenModule(node) && !KeepsInput(node);
      const bool scaling = !above && IsFrozenScaling(node);
      if (scaling) KeepInputGradient(node);
      if (!above && !product && !scaling) continue;
      for (const RequestId id : node.reads) Release(id, number);
    }
  }

 private:
  // Of each pass, the first node that needs a gradient.
  void FindFirstNodes() {
    for (const Pass& pass : graph_.passes()) {
      uint64_t first = UINT64_MAX;
      for (uint32_t place = pass.begin; place <= pass.end && first == UINT64_MAX; ++place) {
        const Event& event = stream_.events[place];
        if (event.kind != EventKind::kAllocate || event.phase != Phase::kForward) continue;
        const Request& request = stream_[event.request];
        const std::string& path = stream_.SiteOf(request).module_path;
        const bool needs = adapted_.empty() ? trained_modules_.contains(path) : adapted_.contains(path);
        if (needs && request.autograd_number > 0) first = NodeOf(request.autograd_number);
      }
      first_.emplace_back(pass.first_node, first);
    }
  }

  [[nodiscard]] uint64_t FirstNodeOf(uint64_t node) const {
    uint64_t first = 0;
    for (const auto& [begin, needs] : first_) {
      if (begin <= node) first = needs;
    }
    return first;
  }

  [[nodiscard]] const std::string* ModuleOf(const GraphNode& node) const {
    if (!node.forward.empty()) return &stream_.SiteOf(stream_[node.forward.front()]).module_path;
    if (!node.backward.empty()) return &stream_.SiteOf(stream_[node.backward.front()]).module_path;
    return nullptr;
  }
  [[nodiscard]] bool IsFrozenModule(const GraphNode& node) const {
    const std::string* path = ModuleOf(node);
    return path != nullptr && frozen_modules_.contains(*path) && !trained_modules_.contains(*path);
  }
  [[nodiscard]] bool KeepsInput(const GraphNode& node) const {
    const std::string* path = ModuleOf(node);
    return path != nullptr && reading_.contains(*path);
  }

  // With the workspace of the product that makes it, or the buffers of the sum.
  void RemoveGradient(RequestId id) {
    edit_->Remove(id);
    const uint32_t place = graph_.spans()[static_cast<size_t>(id)].allocated;
    if (place + 1 >= stream_.events.size()) return;
    if (IsReduction(stream_, place + 1)) {
      edit_->Remove(stream_.events[place + 1].request);
      edit_->Remove(stream_.events[place + 2].request);
      return;
    }
    const Event& next = stream_.events[place + 1];
    if (next.kind != EventKind::kAllocate) return;
    if (stream_[next.request].memory_class == MemoryClass::kWorkspace) edit_->Remove(next.request);
  }

  // x * weight, as norms written in Python have it: x is saved for the weight's gradient only.
  [[nodiscard]] bool IsFrozenScaling(const GraphNode& node) const {
    if (!node.operator_name.starts_with("MulBackward")) return false;
    return std::any_of(node.backward.begin(), node.backward.end(), [&](RequestId id) {
      const Request& request = stream_[id];
      return request.memory_class == MemoryClass::kGradient && request.parameter != ParameterId::kNone &&
             !kept_.contains(stream_[request.parameter].name);
    });
  }
  // Of what the node asks for, the gradient that is handed on: it lives longest.
  void KeepInputGradient(const GraphNode& node) {
    RequestId input = RequestId::kNone;
    const auto freed = [&](RequestId id) { return graph_.spans()[static_cast<size_t>(id)].freed; };
    for (const RequestId id : node.backward) {
      if (stream_[id].memory_class == MemoryClass::kGradient) continue;
      if (input == RequestId::kNone || freed(id) > freed(input)) input = id;
    }
    for (const RequestId id : node.backward) {
      if (id != input) edit_->Remove(id);
    }
  }

  // A tied weight has one named gradient; the other uses' are summed into it.
  void RemoveUnnamedGradient(const GraphNode& node) {
    const std::string* path = ModuleOf(node);
    for (const RequestId id : node.backward) {
      if (stream_[id].memory_class == MemoryClass::kGradient) return;
    }
    for (const RequestId id : node.backward) {
      const bool of_weight =
          std::any_of(stream_.parameters.begin(), stream_.parameters.end(),
                      [&](const auto& p) { return p.module_path == *path && p.bytes == stream_[id].bytes; });
      if (!of_weight || stream_[id].memory_class == MemoryClass::kWorkspace) continue;
      RemoveGradient(id);
      return;
    }
  }

  // Saved for nothing any more.
  void Release(RequestId id, uint64_t reader) {
    const Request& request = stream_[id];
    if (!request.saved || request.memory_class != MemoryClass::kActivation) return;
    // What a node that still runs made for itself (a mask, statistics) is read by it alone.
    if (NodeOf(request.autograd_number) >= FirstNodeOf(reader) && IsStillRead(id, reader)) return;
    edit_->FreeAfter(id, graph_.ReleasePlace(id));
  }
  // A nonlinear operator's own result, which it saves beside the product that reads it last.
  [[nodiscard]] bool IsStillRead(RequestId id, uint64_t reader) const {
    const uint64_t maker = NodeOf(stream_[id].autograd_number);
    const GraphNode* node = graph_.Find(maker);
    if (node == nullptr || maker == reader) return false;
    constexpr std::string_view kSaveResults[] = {"ReluBackward0", "TanhBackward0", "SigmoidBackward0",
                                                 "SoftmaxBackward0"};
    return std::find(std::begin(kSaveResults), std::end(kSaveResults), node->operator_name) !=
           std::end(kSaveResults);
  }

  const Graph& graph_;
  const Stream& stream_;
  const std::set<std::string>& kept_;
  const std::set<std::string>& adapted_;
  const std::set<std::string>& reading_;
  Edit* edit_;
  std::set<std::string> trained_modules_;
  std::set<std::string> frozen_modules_;
  std::vector<std::pair<uint64_t, uint64_t>> first_;
};

}  // namespace

OptimizerRecipe RecipeOf(const Stream& stream) {
  OptimizerRecipe recipe;
  // The parameter with the most elements stands for all.
  ParameterId sample = ParameterId::kNone;
  for (const ParameterId id : TrainedParameters(stream)) {
    if (sample == ParameterId::kNone || stream[id].bytes > stream[sample].bytes) sample = id;
  }
  uint64_t temporaries = 0;
  uint64_t last = 0;
  for (const Event& event : stream.events) {
    if (event.kind == EventKind::kStepEnd) {
      last = temporaries;
      temporaries = 0;
    }
    if (event.kind != EventKind::kAllocate) continue;
    const Request& request = stream[event.request];
    if (request.memory_class == MemoryClass::kOptimizerState) {
      if (request.parameter != sample || sample == ParameterId::kNone) continue;
      const bool scalar = request.bytes <= 8;
      recipe.states.push_back(
          {stream.state_keys[request.state_key], request.bytes, scalar ? 0 : stream[sample].bytes});
    } else if (stream.SiteOf(request).phase == Phase::kOptimizer) {
      ++temporaries;
    }
  }
  const uint64_t count = TrainedParameters(stream).size();
  if (last > 0) recipe.temporaries = last < 2 * count ? 1 : 2;
  return recipe;
}

Stream Rebuild(const Stream& stream, const OptimizerRecipe& recipe) {
  OptimizerEdit edit(stream);
  edit.RemoveTemporaries();
  edit.RemoveState();
  for (const OptimizerPlace& at : edit.places()) {
    std::vector<RequestId> list;
    for (const ParameterId id : edit.trained()) {
      const Bytes bytes = stream[id].bytes;
      for (const OptimizerRecipe::State& state : recipe.states) {
        if (!at.first) break;
        const Bytes size =
            state.denominator == 0 ? state.numerator : bytes * state.numerator / state.denominator;
        edit.AddState(at, id, std::max<Bytes>(1, size), state.key);
      }
      for (uint64_t i = 0; i < recipe.temporaries; ++i) list.push_back(edit.Take(at, bytes));
      // One parameter at a time: what the one before left is given back.
      while (recipe.temporaries == 2 && list.size() > 3) {
        edit.Give(at, list.front());
        list.erase(list.begin());
      }
    }
    for (const RequestId id : list) edit.Give(at, id);
  }
  return std::move(edit).Finish();
}

std::vector<LinearLayer> InnerLinears(const Stream& stream) {
  std::vector<LinearLayer> linears;
  for (const Module& module : stream.modules) {
    const bool transposed = module.class_name == "Conv1D";
    if (module.class_name != "Linear" && !transposed) continue;
    for (uint32_t i = 0; i < stream.parameters.size(); ++i) {
      const Parameter& parameter = stream.parameters[i];
      if (parameter.module_path != module.path || parameter.shape.size() != 2) continue;
      const auto rows = static_cast<uint64_t>(std::max<int64_t>(1, parameter.shape[0]));
      const auto columns = static_cast<uint64_t>(std::max<int64_t>(1, parameter.shape[1]));
      linears.push_back(
          {module.path, ParameterId{i}, transposed ? rows : columns, transposed ? columns : rows});
    }
  }
  if (!linears.empty()) linears.pop_back();
  return linears;
}

void Freeze(const Graph& graph, const std::set<std::string>& kept, const std::set<std::string>& adapted,
            const std::set<std::string>& reading, Edit* edit) {
  Freezer(graph, kept, adapted, reading, edit).Run();
}

}  // namespace vramtrace::forecast
