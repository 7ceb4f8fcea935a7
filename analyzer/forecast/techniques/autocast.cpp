// torch.autocast in BF16 around the forward and the loss. Weights stay in single precision; each operator
// runs in the type that the lists of pytorch.org/docs/stable/amp.html give it, and its inputs are cast:
//   matrix products, convolutions, attention: half. Copies of weights are kept until the region ends, and as
//   long as backward needs them; copies of inputs are saved in their place. Their gradients are cast back.
//   norms, powers, exponentials, softmax, losses: single.
//   everything else: the widest of its inputs.

#include <algorithm>
#include <set>

#include "analyzer/forecast/techniques/half_rules.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr Bytes kSmall = 4096;

bool IsSingleOnly(std::string_view name) {
  constexpr std::string_view kOperators[] = {"NativeLayerNorm",
                                             "NativeGroupNorm",
                                             "Pow",
                                             "Exp",
                                             "Log",
                                             "Softmax",
                                             "Nll",
                                             "Sum",
                                             "Prod",
                                             "Cumsum",
                                             "Rsqrt",
                                             "LinalgVectorNorm",
                                             "Norm",
                                             "Embedding",
                                             "MseLoss"};
  return std::any_of(std::begin(kOperators), std::end(kOperators),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

class Autocast {
 public:
  explicit Autocast(const Stream& stream) : stream_(stream), graph_(stream), edit_(stream) {
    for (uint32_t i = 0; i < stream.parameters.size(); ++i) {
      of_module_[stream.parameters[i].module_path].push_back(ParameterId{i});
    }
    for (const Site& site : stream.sites) {
      for (size_t dot = site.module_path.find('.'); dot != std::string::npos;
           dot = site.module_path.find('.', dot + 1)) {
        parents_.insert(site.module_path.substr(0, dot));
      }
      if (!site.module_path.empty()) parents_.insert("");
    }
  }

  Edited Apply() && {
    const bool single = std::any_of(stream_.parameters.begin(), stream_.parameters.end(),
                                    [](const Parameter& p) { return p.trained && IsSingle(p); });
    if (!single) return "no trained weight is in single precision";
    const bool products = std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                                      [](const auto& n) { return IsProduct(n.second.operator_name); });
    if (!products) return "no matrix product was recorded";
    for (const Pass& pass : graph_.passes()) Forward(pass);
    for (const auto& [number, node] : graph_.nodes()) Node(number, node);
    for (const RequestId id : half_) edit_.Scale(id, 1, 2);
    RemoveLayoutCopies(graph_, &edit_);
    return std::move(edit_).Finish();
  }

 private:
  [[nodiscard]] const std::string& NameOf(const Request& request) const {
    static const std::string kNone;
    const GraphNode* node = graph_.Find(NodeOf(request.autograd_number));
    return node == nullptr ? kNone : node->operator_name;
  }

  // Types of what a pass asks for, in its order.
  void Forward(const Pass& pass) {
    bool flow = false;  // the newest result is half
    bool seen_full = false;
    std::string module;
    bool module_full = false;
    bool same_module = false;
    for (uint32_t place = pass.begin; place < stream_.events.size(); ++place) {
      const Event& event = stream_.events[place];
      if (event.kind == EventKind::kStepEnd || event.phase == Phase::kBackward) break;
      if (event.kind != EventKind::kAllocate) continue;
      const Request& request = stream_[event.request];
      const Site& site = stream_.SiteOf(request);
      if (site.phase != Phase::kForward && site.phase != Phase::kScript) continue;
      if (request.memory_class == MemoryClass::kWorkspace || request.memory_class == MemoryClass::kInput)
        continue;
      if (request.bytes <= 8) continue;
      same_module = site.module_path == module;
      if (!same_module) module_full = false;
      module = site.module_path;
      const bool half = IsHalf(request, site, flow, module_full, same_module, seen_full);
      if (IsMinor(request)) continue;
      if (half) half_.insert(event.request);
      flow = half;
      module_full = module_full || !half;
      // Position and index arithmetic is none of the model's values.
      seen_full = seen_full || (!half && request.bytes > kSmall);
    }
  }

  [[nodiscard]] bool IsOfTransformers(const Request& request) const {
    return stream_.SiteOf(request).text.starts_with("loss/loss_utils.py");
  }

  // Masks, statistics and indices: their type does not follow.
  [[nodiscard]] bool IsMinor(const Request& request) const {
    const GraphNode* node = graph_.Find(NodeOf(request.autograd_number));
    if (node == nullptr) return false;
    Bytes main = 0;
    for (const RequestId id : node->forward) {
      if (stream_[id].memory_class != MemoryClass::kWorkspace) main = std::max(main, stream_[id].bytes);
    }
    // Indices of 8 bytes beside values of 4.
    const bool indices =
        node->operator_name.starts_with("MaxPool") && request.bytes == main && node->forward.size() > 1;
    return request.bytes * 4 <= main || indices;
  }

  [[nodiscard]] bool IsHalf(const Request& request, const Site& site, bool flow, bool module_full,
                            bool same_module, bool seen_full) const {
    const std::string& name = NameOf(request);
    if (IsProduct(name) || name.starts_with("ScaledDotProduct") || IsCacheCopy(stream_, request)) return true;
    if (name.starts_with("LogSoftmax")) return !IsOfTransformers(request);
    if (IsSingleOnly(name)) return false;
    const GraphNode* node = graph_.Find(NodeOf(request.autograd_number));
    const bool multiplies = name.starts_with("Mul") && !node->reads.empty();
    if (multiplies) {
      return std::all_of(node->reads.begin(), node->reads.end(), [&](RequestId id) {
        return half_.contains(id) || stream_[id].memory_class == MemoryClass::kWeight;
      });
    }
    if (!parents_.contains(site.module_path)) return flow && !module_full;
    // A container's own operator: a copy of what it just computed, a residual sum, a position's encoding.
    if (same_module && flow) return true;
    if (of_module_.contains(site.module_path)) return false;
    return !seen_full && flow;
  }

  void Node(uint64_t number, const GraphNode& node) {
    const std::string& name = node.operator_name;
    if (IsProduct(name)) {
      Product(number, node);
    } else {
      Other(number, node);
    }
    if (name.starts_with("ScaledDotProduct")) CastReads(node, nullptr);
    if (IsSingleOnly(name) && !name.starts_with("Nll") && !name.starts_with("Log")) WidenReads(node);
    if (name.starts_with("Softmax")) CastProbabilities(number, node);
    if (!name.starts_with("LogSoftmax") || node.forward.empty()) return;
    if (IsOfTransformers(stream_[node.forward.front()])) {
      CastLogits(graph_, number, node, true, &edit_);
    } else {
      CastLoss(number, node);
    }
  }

  // Half-precision tensors that an operator of single precision saves: their copies are saved instead.
  void WidenReads(const GraphNode& node) {
    const RequestId result = ResultOf(node);
    if (result == RequestId::kNone) return;
    for (const RequestId id : node.reads) {
      if (!half_.contains(id) ||
          NodeOf(stream_[id].autograd_number) == NodeOf(stream_[result].autograd_number))
        continue;
      Request wide = stream_[id];
      wide.site = stream_[result].site;
      wide.autograd_number = stream_[result].autograd_number;
      wide.memory_class = MemoryClass::kActivation;
      const uint32_t place = edit_.SpanOf(result).allocated;
      edit_.FreeAfter(edit_.AllocateBefore(place, wide), edit_.SpanOf(id).freed);
      if (!IsProduct(NameOf(stream_[id])) || node.reads.size() == 1)
        edit_.FreeAfter(id, graph_.ReleasePlace(id));
    }
  }

  // Attention's probabilities are saved twice: by the softmax, and cast for the product that follows.
  void CastProbabilities(uint64_t number, const GraphNode& node) {
    const RequestId result = ResultOf(node);
    if (result == RequestId::kNone) return;
    for (uint64_t next = number + 1; next < number + 12; ++next) {
      const GraphNode* product = graph_.Find(next);
      if (product == nullptr || !IsProduct(product->operator_name)) continue;
      const RequestId reader = ResultOf(*product);
      if (reader != RequestId::kNone) Copy(result, reader, EndOf(*product));
      return;
    }
  }

  // torch.nn.functional.cross_entropy gives log_softmax its input's type, half; nll_loss reads a copy.
  void CastLoss(uint64_t number, const GraphNode& node) {
    const RequestId result = node.forward.front();
    half_.insert(result);
    for (const RequestId id : node.backward) half_.insert(id);
    const GraphNode* loss = graph_.Find(number + 1);
    if (loss == nullptr || loss->backward.empty() || node.backward.empty()) return;
    edit_.FreeAfter(edit_.AllocateAfter(edit_.SpanOf(result).allocated, stream_[result]), EndOf(*loss));
    const RequestId gradient = loss->backward.front();
    const uint32_t place = node.backward_place;
    const RequestId copy = edit_.AllocateBefore(place, Narrow(stream_[gradient], MemoryClass::kTemporary));
    const uint32_t freed = edit_.SpanOf(gradient).freed;
    edit_.FreeBefore(gradient, place);
    edit_.FreeAfter(copy, freed);
  }

  Request Narrow(Request request, MemoryClass memory_class) const {
    request.memory_class = memory_class;
    request.bytes = (request.bytes + 1) / 2;
    request.law = request.law.Times(1, 2);
    return request;
  }

  [[nodiscard]] RequestId ResultOf(const GraphNode& node) const {
    RequestId result = RequestId::kNone;
    for (const RequestId id : node.forward) {
      if (stream_[id].memory_class == MemoryClass::kWorkspace) continue;
      if (result == RequestId::kNone || stream_[id].bytes > stream_[result].bytes) result = id;
    }
    return result;
  }

  // Single-precision tensors that the node saves are cast, and the copies saved. `before`: the node's result.
  bool CastReads(const GraphNode& node, RequestId* widest) {
    const RequestId result = ResultOf(node);
    if (result == RequestId::kNone) return false;
    bool any = false;
    for (const RequestId id : node.reads) {
      const Request& request = stream_[id];
      const bool value = request.memory_class == MemoryClass::kActivation ||
                         request.memory_class == MemoryClass::kOutput ||
                         request.memory_class == MemoryClass::kInput;
      if (!value || request.bytes <= kSmall) continue;
      if (NodeOf(request.autograd_number) == NodeOf(stream_[result].autograd_number)) continue;
      any = true;
      if (widest != nullptr && (*widest == RequestId::kNone || request.bytes > stream_[*widest].bytes))
        *widest = id;
      if (half_.contains(id) || IsMinor(request)) continue;
      Copy(id, result, edit_.SpanOf(id).freed);
      if (!IsReadByMaker(id)) edit_.FreeAfter(id, graph_.ReleasePlace(id));
    }
    return any;
  }

  // The operator that made it saves its own result.
  [[nodiscard]] bool IsReadByMaker(RequestId id) const {
    const std::string& name = NameOf(stream_[id]);
    return name.starts_with("Softmax") || name.starts_with("Relu") || name.starts_with("Tanh") ||
           name.starts_with("Sigmoid") || stream_[id].memory_class == MemoryClass::kInput;
  }

  void Copy(RequestId of, RequestId before, uint32_t freed) {
    const uint32_t place = edit_.SpanOf(before).allocated;
    Request request = Narrow(stream_[of], MemoryClass::kActivation);
    request.site = stream_[before].site;
    request.autograd_number = stream_[before].autograd_number;
    request.step = stream_[before].step;
    request.saved = true;
    edit_.FreeAfter(edit_.AllocateBefore(place, request), freed);
  }

  void Product(uint64_t number, const GraphNode& node) {
    const RequestId result = ResultOf(node);
    if (result == RequestId::kNone) return;
    const std::string& path = stream_.SiteOf(stream_[result]).module_path;
    const std::string parent = path.substr(0, path.rfind('.') == std::string::npos ? 0 : path.rfind('.'));
    const uint32_t end = EndOf(node);
    CopyWeights(number, node, result, end);
    RequestId input = RequestId::kNone;
    RequestId input_gradient = RequestId::kNone;
    for (const RequestId id : node.backward) {
      const bool other = stream_[id].memory_class == MemoryClass::kWorkspace ||
                         stream_[id].memory_class == MemoryClass::kGradient || IsStaging(graph_, id);
      if (other) continue;
      if (input_gradient == RequestId::kNone || stream_[id].bytes > stream_[input_gradient].bytes)
        input_gradient = id;
    }
    if (CastReads(node, &input)) {
      newest_input_[parent] = {input, number};
    } else if (input_gradient != RequestId::kNone && newest_input_.contains(parent)) {
      // Another product reads the same tensor (queries, keys, values) and saves a copy of its own.
      const auto [shared, reader] = newest_input_[parent];
      const bool same = stream_[shared].bytes == stream_[input_gradient].bytes &&
                        !MadeBetween(reader, number, stream_[shared].bytes);
      if (same && !half_.contains(shared) && stream_[shared].step == stream_[result].step)
        Copy(shared, result, end);
      if (same) input = shared;
    }
    if (input == RequestId::kNone && input_gradient == RequestId::kNone) CopyBatch(result, end);
    const bool widened = input != RequestId::kNone && !half_.contains(input);
    for (const RequestId id : node.backward) {
      const Request& request = stream_[id];
      if (request.memory_class == MemoryClass::kWorkspace || request.bytes <= 8 || IsStaging(graph_, id))
        continue;
      const bool full = request.memory_class == MemoryClass::kGradient || (id == input_gradient && widened);
      if (!full) {
        half_.insert(id);
        continue;
      }
      const uint32_t place = edit_.SpanOf(id).allocated;
      edit_.FreeAfter(edit_.AllocateBefore(place, Narrow(request, MemoryClass::kTemporary)), place);
    }
  }

  // The first layer reads the batch.
  void CopyBatch(RequestId result, uint32_t end) {
    const uint32_t place = edit_.SpanOf(result).allocated;
    for (uint32_t i = place; i-- > 0;) {
      const Event& event = stream_.events[i];
      if (event.kind == EventKind::kStepEnd) return;
      const Request& request = stream_[event.request];
      if (event.kind != EventKind::kAllocate || request.memory_class != MemoryClass::kInput) continue;
      if (request.bytes <= kSmall) continue;
      Copy(event.request, result, end);
      return;
    }
  }

  // Something else of that size was computed after the first reader: it is the likelier input.
  [[nodiscard]] bool MadeBetween(uint64_t first, uint64_t last, Bytes bytes) const {
    for (uint64_t number = first + 1; number < last; ++number) {
      const GraphNode* node = graph_.Find(number);
      if (node == nullptr || IsProduct(node->operator_name)) continue;
      const RequestId result = ResultOf(*node);
      if (result != RequestId::kNone && stream_[result].bytes == bytes) return true;
    }
    return false;
  }

  // The last event of the node's run in backward.
  [[nodiscard]] uint32_t EndOf(const GraphNode& node) const {
    if (node.backward.empty()) return Span::kOpen;
    uint32_t place = edit_.SpanOf(node.backward.back()).allocated;
    while (place + 1 < stream_.events.size() && stream_.events[place + 1].kind == EventKind::kFree) ++place;
    return place;
  }

  // By the gradients that the node makes; where it makes none, by its module.
  [[nodiscard]] std::vector<ParameterId> WeightsOf(const GraphNode& node, RequestId result) const {
    std::vector<ParameterId> weights;
    for (const RequestId id : node.backward) {
      const Request& request = stream_[id];
      if (request.memory_class == MemoryClass::kGradient && request.parameter != ParameterId::kNone) {
        weights.push_back(request.parameter);
      }
    }
    const auto found = of_module_.find(stream_.SiteOf(stream_[result]).module_path);
    if (weights.empty() && found != of_module_.end()) return found->second;
    return weights;
  }

  void CopyWeights(uint64_t number, const GraphNode& node, RequestId result, uint32_t end) {
    const Pass* pass = graph_.PassOf(number);
    const uint32_t region = pass == nullptr ? edit_.SpanOf(result).allocated : pass->end;
    for (const ParameterId id : WeightsOf(node, result)) {
      const Parameter& parameter = stream_[id];
      if (!IsSingle(parameter)) continue;
      Request request = stream_[result];
      request.memory_class = MemoryClass::kActivation;
      request.bytes = parameter.bytes / 2;
      request.law = SizeLaw::Fixed(request.bytes);
      request.parameter = id;
      request.is_copy = true;
      request.saved = parameter.shape.size() > 1;
      const RequestId copy = edit_.AllocateBefore(edit_.SpanOf(result).allocated, request);
      edit_.FreeAfter(copy, request.saved && end != Span::kOpen ? end : region);
    }
  }

  // Gradients have the type of the forward's result; of views, that of what they view.
  void Other(uint64_t number, const GraphNode& node) {
    if (IsSingleOnly(node.operator_name)) return;
    RequestId result = ResultOf(node);
    bool minor = result != RequestId::kNone && IsMinor(stream_[result]);
    for (uint64_t before = number; result == RequestId::kNone || minor;) {
      if (before == 0 || number - before > 16) return;
      const GraphNode* other = graph_.Find(--before);
      if (other == nullptr) continue;
      result = ResultOf(*other);
      minor = result != RequestId::kNone && IsMinor(stream_[result]);
    }
    if (!half_.contains(result)) return;
    for (const RequestId id : node.backward) {
      const Request& request = stream_[id];
      const bool keeps = request.memory_class == MemoryClass::kWorkspace ||
                         request.memory_class == MemoryClass::kGradient || request.bytes <= 8 ||
                         IsStaging(graph_, id);
      if (!keeps) half_.insert(id);
    }
  }

  const Stream& stream_;
  Graph graph_;
  Edit edit_;
  std::map<std::string, std::vector<ParameterId>> of_module_;
  std::set<std::string> parents_;
  std::set<RequestId> half_;
  // By parent module: what its newest product read, and that product.
  std::map<std::string, std::pair<RequestId, uint64_t>> newest_input_;
};

}  // namespace

bool IsAutocast(const Stream& stream) {
  // Copies of one weight in many steps; a lone activation may have half a weight's size by chance.
  std::set<ParameterId> copied;
  std::set<ParameterId> matrices;
  for (const Request& request : stream.requests) {
    if (request.memory_class == MemoryClass::kGradient) matrices.insert(request.parameter);
    if (request.is_copy && request.parameter != ParameterId::kNone) copied.insert(request.parameter);
  }
  const bool casts = std::any_of(stream.sites.begin(), stream.sites.end(), [](const Site& site) {
    return site.operator_name.starts_with("ToCopyBackward");
  });
  return casts && copied.size() * 4 > matrices.size();
}

Edited ApplyAutocast(const Stream& stream, const TechniqueOptions& /*options*/) {
  return Autocast(stream).Apply();
}

}  // namespace vramtrace::forecast
