// Many cards. Each row is what one of them holds, for ranks that do the same work.
// ZeRO: arXiv 1910.02054, tables 1 and 2; FSDP2: torch/distributed/fsdp/_fully_shard; tensor parallel:
// arXiv 1909.08053 and 2205.05198.

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/forecast/techniques/parameters.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr const char* kNoStep = "no optimizer step was completed";

Bytes ShareOf(Bytes bytes, uint32_t cards) { return (bytes + cards - 1) / cards; }

// The optimizer's part of a stream as if each parameter were a cards-th of itself.
Stream RebuildSharded(Stream stream, const OptimizerRecipe& recipe, uint32_t cards) {
  const std::vector<Parameter> whole = stream.parameters;
  for (Parameter& parameter : stream.parameters) parameter.bytes = ShareOf(parameter.bytes, cards);
  Stream rebuilt = Rebuild(stream, recipe);
  rebuilt.parameters = whole;
  return rebuilt;
}

std::string Refusal(const Stream& stream) {
  if (OptimizerPlaces(stream).empty()) return kNoStep;
  if (TrainedParameters(stream).empty()) return "no trained parameter is named in the trace";
  return {};
}

bool IsGradient(const Stream& stream, const Event& event) {
  return event.kind == EventKind::kAllocate && event.phase == Phase::kBackward &&
         stream[event.request].memory_class == MemoryClass::kGradient;
}

// The last event of the node that asks for the request at `place`, and the frees that follow it.
uint32_t EndOfNode(const Stream& stream, uint32_t place) {
  const uint64_t node = stream[stream.events[place].request].autograd_number;
  uint32_t last = place;
  for (uint32_t i = place + 1; i < stream.events.size(); ++i) {
    const Event& event = stream.events[i];
    if (event.kind == EventKind::kStepEnd || event.phase != Phase::kBackward) break;
    if (event.kind == EventKind::kAllocate && stream[event.request].autograd_number != node) break;
    last = i;
  }
  return last;
}

// Gradients are reduced as they come, and a share of each is kept.
Stream ShardGradients(const Stream& stream, uint32_t cards) {
  Edit edit(stream);
  for (uint32_t place = 0; place < stream.events.size(); ++place) {
    const Event& event = stream.events[place];
    if (!IsGradient(stream, event)) continue;
    Request share = stream[event.request];
    share.bytes = ShareOf(share.bytes, cards);
    share.law = SizeLaw::Fixed(share.bytes);
    const uint32_t end = EndOfNode(stream, place);
    const uint32_t freed = edit.SpanOf(event.request).freed;
    const RequestId kept = edit.AllocateAfter(end, share);
    edit.FreeAfter(kept, freed != Span::kOpen && freed > end ? freed : Span::kOpen);
    edit.FreeAfter(event.request, end);
  }
  return std::move(edit).Finish();
}

class FullShard {
 public:
  FullShard(const Stream& stream, uint32_t cards)
      : stream_(stream), cards_(cards), edit_(stream), blocks_(RepeatedBlocks(stream)) {}

  Edited Apply() && {
    if (blocks_.empty()) return "no module of the model repeats, and there is nothing to shard by";
    windows_ = FindWindows(stream_, blocks_);
    if (windows_.empty()) return "no forward of a repeated block was recorded";
    for (const Parameter& parameter : stream_.parameters) {
      const size_t block = BlockOf(parameter);
      (block < blocks_.size() ? of_block_[block] : of_root_) += parameter.bytes;
    }
    ShardWeights();
    for (size_t i = 0; i < windows_.size(); ++i) Gather(i);
    GatherRoot();
    return std::move(edit_).Finish();
  }

 private:
  [[nodiscard]] size_t BlockOf(const Parameter& parameter) const {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (IsBelow(parameter.module_path, blocks_[b])) return b;
    }
    return blocks_.size();
  }

  void ShardWeights() {
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      if (stream_.requests[i].memory_class == MemoryClass::kWeight) edit_.Scale(RequestId{i}, 1, cards_);
    }
  }

  Request Buffer(uint32_t place, Bytes bytes) const {
    Request request = stream_[stream_.events[place].request];
    request.bytes = bytes;
    request.law = SizeLaw::Fixed(bytes);
    request.memory_class = MemoryClass::kCommunication;
    request.confidence = Confidence::kHigh;
    request.parameter = ParameterId::kNone;
    request.is_copy = false;
    request.saved = false;
    return request;
  }

  // A block's weights are gathered while the block before it runs, and go after it; in backward again. Its
  // gradients are copied into one buffer, reduced, and a share of each stays.
  void Gather(size_t index) {
    const BlockWindow& window = windows_[index];
    const auto found = of_block_.find(window.block);
    if (found == of_block_.end()) return;
    const bool follows = index > 0 && windows_[index - 1].step == window.step;
    const uint32_t from = follows ? windows_[index - 1].begin : window.begin;
    edit_.FreeAfter(edit_.AllocateBefore(from, Buffer(from, found->second)), window.end);
    if (window.backward_begin == Span::kOpen || window.backward_end == Span::kOpen) return;
    const bool next = index + 1 < windows_.size() && windows_[index + 1].step == window.step &&
                      windows_[index + 1].backward_begin != Span::kOpen;
    const uint32_t again = next ? windows_[index + 1].backward_begin : window.backward_begin;
    const uint32_t end = window.backward_end;
    edit_.FreeAfter(edit_.AllocateBefore(again, Buffer(again, found->second)), end);
    Reduce(window, index > 0 && windows_[index - 1].backward_end != Span::kOpen
                       ? windows_[index - 1].backward_end
                       : end);
  }

  void Reduce(const BlockWindow& window, uint32_t until) {
    Bytes all = 0;
    std::vector<RequestId> gradients;
    for (uint32_t place = window.backward_begin; place <= window.backward_end; ++place) {
      if (!IsGradient(stream_, stream_.events[place])) continue;
      gradients.push_back(stream_.events[place].request);
      all += stream_[gradients.back()].bytes;
    }
    if (gradients.empty()) return;
    const uint32_t end = window.backward_end;
    const RequestId input = edit_.AllocateAfter(end, Buffer(window.backward_begin, all));
    edit_.FreeAfter(input, std::max(until, end));
    for (const RequestId id : gradients) Keep(id, end);
  }

  void Keep(RequestId id, uint32_t end) {
    Request share = stream_[id];
    share.bytes = ShareOf(share.bytes, cards_);
    share.law = SizeLaw::Fixed(share.bytes);
    const uint32_t freed = edit_.SpanOf(id).freed;
    edit_.FreeAfter(id, end);
    edit_.FreeAfter(edit_.AllocateAfter(end, share),
                    freed != Span::kOpen && freed > end ? freed : Span::kOpen);
  }

  // What is in no block is gathered for the whole forward and backward.
  void GatherRoot() {
    if (of_root_ == 0) return;
    const Graph graph(stream_);
    for (size_t i = 0; i < graph.passes().size(); ++i) {
      const uint32_t begin = graph.passes()[i].begin;
      uint32_t end = begin;
      std::vector<RequestId> gradients;
      for (uint32_t place = begin; place < stream_.events.size(); ++place) {
        const Event& event = stream_.events[place];
        if (event.kind == EventKind::kStepEnd) break;
        if (event.phase == Phase::kBackward) end = place;
        if (i + 1 < graph.passes().size() && place >= graph.passes()[i + 1].begin) break;
        if (IsGradient(stream_, event) && !InWindow(place)) gradients.push_back(event.request);
      }
      edit_.FreeAfter(edit_.AllocateBefore(begin, Buffer(begin, of_root_)),
                      std::max(end, graph.passes()[i].end));
      for (const RequestId id : gradients) Keep(id, end);
    }
  }

  [[nodiscard]] bool InWindow(uint32_t place) const {
    return std::any_of(windows_.begin(), windows_.end(), [&](const BlockWindow& window) {
      return window.backward_begin != Span::kOpen && window.backward_begin <= place &&
             place <= window.backward_end;
    });
  }

  const Stream& stream_;
  uint32_t cards_;
  Edit edit_;
  std::vector<std::string> blocks_;
  std::vector<BlockWindow> windows_;
  std::map<size_t, Bytes> of_block_;
  Bytes of_root_ = 0;
};

class TensorParallel {
 public:
  TensorParallel(const Stream& stream, uint32_t cards)
      : stream_(stream), cards_(cards), graph_(stream), edit_(stream), sharded_(stream.parameters.size()) {}

  Edited Apply() && {
    FindLayers();
    if (rows_.empty()) return "no pair of linear layers inside a repeated block was found to be split";
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      const Request& request = stream_.requests[i];
      const bool of_shard =
          request.parameter != ParameterId::kNone && sharded_[static_cast<size_t>(request.parameter)];
      if (of_shard && request.memory_class != MemoryClass::kOptimizerState) Divide(RequestId{i});
    }
    for (const auto& [number, node] : graph_.nodes()) SplitNode(number, node);
    SplitLogits();
    for (const RequestId id : divided_) edit_.Scale(id, 1, cards_);
    const OptimizerRecipe recipe = RecipeOf(stream_);
    Stream edited = std::move(edit_).Finish();
    for (size_t i = 0; i < edited.parameters.size(); ++i) {
      if (sharded_[i]) edited.parameters[i].bytes = ShareOf(edited.parameters[i].bytes, cards_);
    }
    return Rebuild(edited, recipe);
  }

 private:
  void Divide(RequestId id) { divided_.insert(id); }

  // Of the linear layers that one module of a block holds, the last is split by rows, the others by columns:
  // what lies between them is divided. The first and last layers of the model are split by vocabulary.
  void FindLayers() {
    const std::vector<std::string> blocks = RepeatedBlocks(stream_);
    std::map<std::string, std::vector<std::string>> groups;
    std::vector<LinearLayer> linears = InnerLinears(stream_);
    for (const LinearLayer& linear : linears) {
      const bool inside =
          std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) { return IsBelow(linear.path, b); });
      if (inside) groups[linear.path.substr(0, linear.path.rfind('.'))].push_back(linear.path);
    }
    for (const auto& [parent, paths] : groups) {
      if (paths.size() < 2) continue;
      rows_.insert(paths.back());
      columns_.insert(paths.begin(), paths.end() - 1);
    }
    std::set<std::string> vocabulary;
    for (const Module& module : stream_.modules) {
      if (module.class_name == "Embedding" && vocabulary.empty()) vocabulary.insert(module.path);
    }
    if (!stream_.modules.empty()) {
      for (const Module& module : stream_.modules) {
        if (module.class_name == "Linear") head_ = module.path;
      }
      if (!vocabulary.empty()) vocabulary.insert(head_);
    }
    has_vocabulary_ = !vocabulary.empty();
    for (size_t i = 0; i < stream_.parameters.size(); ++i) {
      const Parameter& parameter = stream_.parameters[i];
      const bool matrix = parameter.shape.size() > 1;
      sharded_[i] = columns_.contains(parameter.module_path) || vocabulary.contains(parameter.module_path) ||
                    (matrix && rows_.contains(parameter.module_path));
    }
  }

  [[nodiscard]] const std::string& ModuleOf(const GraphNode& node) const {
    static const std::string kNone;
    if (!node.forward.empty()) return stream_.SiteOf(stream_[node.forward.front()]).module_path;
    return node.backward.empty() ? kNone : stream_.SiteOf(stream_[node.backward.front()]).module_path;
  }

  [[nodiscard]] bool Scratch(RequestId id) const {
    const MemoryClass memory_class = stream_[id].memory_class;
    return memory_class == MemoryClass::kWorkspace || memory_class == MemoryClass::kGradient ||
           stream_[id].parameter != ParameterId::kNone;
  }

  // Nodes come in the order of the forward: between a layer split by columns and the one by rows.
  void SplitNode(uint64_t /*number*/, const GraphNode& node) {
    const std::string& module = ModuleOf(node);
    const bool column = columns_.contains(module) && IsProduct(node.operator_name);
    const bool row = rows_.contains(module) && IsProduct(node.operator_name);
    if (column) between_ = true;
    for (const RequestId id : node.forward) {
      if (between_ && !row && !Scratch(id)) Divide(id);
    }
    for (const RequestId id : node.backward) {
      if (between_ && !column && !Scratch(id)) Divide(id);
    }
    if (row) between_ = false;
  }

  // Logits and what the loss makes of them.
  void SplitLogits() {
    if (!has_vocabulary_) return;
    Bytes logits = 0;
    for (const auto& [number, node] : graph_.nodes()) {
      if (ModuleOf(node) != head_ || !IsProduct(node.operator_name)) continue;
      for (const RequestId id : node.forward) {
        if (!Scratch(id)) logits = std::max(logits, stream_[id].bytes);
      }
    }
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      if (stream_.requests[i].bytes == logits && logits > 0 && !Scratch(RequestId{i})) Divide(RequestId{i});
    }
  }

  const Stream& stream_;
  uint32_t cards_;
  Graph graph_;
  Edit edit_;
  std::vector<bool> sharded_;  // by parameter
  std::set<std::string> columns_;
  std::set<std::string> rows_;
  std::string head_;
  bool has_vocabulary_ = false;
  bool between_ = false;
  std::set<RequestId> divided_;
};

bool HasModule(const Stream& stream, std::string_view part) {
  return std::any_of(stream.modules.begin(), stream.modules.end(),
                     [&](const Module& module) { return module.class_name.find(part) != std::string::npos; });
}

bool HasOptimizer(const Stream& stream, std::string_view part) {
  return std::any_of(stream.facts.optimizers.begin(), stream.facts.optimizers.end(),
                     [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

}  // namespace

bool IsZero(const Stream& stream) {
  return HasOptimizer(stream, "ZeroRedundancy") || HasOptimizer(stream, "DeepSpeedZero") ||
         IsFullShard(stream);
}

Edited ApplyZero1(const Stream& stream, const TechniqueOptions& options) {
  if (std::string why = Refusal(stream); !why.empty()) return why;
  return RebuildSharded(stream, RecipeOf(stream), options.cards);
}

Edited ApplyZero2(const Stream& stream, const TechniqueOptions& options) {
  if (std::string why = Refusal(stream); !why.empty()) return why;
  return RebuildSharded(ShardGradients(stream, options.cards), RecipeOf(stream), options.cards);
}

bool IsFullShard(const Stream& stream) {
  return HasModule(stream, "FSDP") || HasModule(stream, "FullyShard");
}

Edited ApplyZero3(const Stream& stream, const TechniqueOptions& options) {
  if (std::string why = Refusal(stream); !why.empty()) return why;
  const OptimizerRecipe recipe = RecipeOf(stream);
  Edited edited = FullShard(stream, options.cards).Apply();
  auto* sharded = std::get_if<Stream>(&edited);
  if (sharded == nullptr) return edited;
  return RebuildSharded(std::move(*sharded), recipe, options.cards);
}

bool IsTensorParallel(const Stream& stream) { return HasModule(stream, "ParallelLinear"); }

Edited ApplyTensorParallel(const Stream& stream, const TechniqueOptions& options) {
  if (std::string why = Refusal(stream); !why.empty()) return why;
  return TensorParallel(stream, options.cards).Apply();
}

// Two cards' first exchange takes about 1.5 GiB beside the caching allocator's memory. Source:
// ml-engineering,
// "+ 1.5 GiB after the first barrier of two GPUs".
void AddCommunicator(ReplayOptions* options, const TechniqueOptions& /*chosen*/) {
  options->elsewhere += Bytes{3} << 29;
}

}  // namespace vramtrace::forecast
