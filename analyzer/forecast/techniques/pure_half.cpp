// Everything in BF16: weights, gradients, optimizer state and activations take half. What PyTorch keeps in
// single precision all the same: statistics of norms, the logsumexp of attention, sums of reductions; and
// what programs cast themselves: transformers' RMSNorm and the loss of its language models.

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/forecast/techniques/half_rules.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr const char* kNotSingle = "the weights are not in single precision";

class PureHalf {
 public:
  explicit PureHalf(const Stream& stream) : stream_(stream), graph_(stream), edit_(stream) {}

  Edited Apply() && {
    Bytes single = 0;
    Bytes all = 0;
    for (const Parameter& parameter : stream_.parameters) {
      all += parameter.bytes;
      if (IsSingle(parameter)) single += parameter.bytes;
    }
    if (all == 0) return "no parameter is named in the trace";
    if (single <= all / 2) return kNotSingle;
    FindInputs();
    full_.resize(stream_.requests.size());
    for (const auto& [number, node] : graph_.nodes()) KeepFull(node);
    KeepLoss();
    KeepNorms();
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      if (!full_[i] && Halves(stream_.requests[i])) edit_.Scale(RequestId{i}, 1, 2);
    }
    RemoveLayoutCopies(graph_, &edit_);
    Stream edited = std::move(edit_).Finish();
    for (Parameter& parameter : edited.parameters) {
      if (!IsSingle(parameter)) continue;
      parameter.dtype = "bfloat16";
      parameter.element_size = 2;
      parameter.bytes /= 2;
    }
    for (Input& input : edited.facts.inputs) {
      if (input.dtype.ends_with("float32")) input.dtype = "bfloat16";
    }
    return edited;
  }

 private:
  void FindInputs() {
    for (const Input& input : stream_.facts.inputs) {
      Bytes elements = 1;
      for (const int64_t side : input.shape) elements *= static_cast<Bytes>(std::max<int64_t>(1, side));
      if (input.dtype.ends_with("float32")) inputs_.insert(elements * 4);
      if (input.shape.size() == 2) length_ = static_cast<Bytes>(input.shape[1]);
    }
  }

  [[nodiscard]] bool Halves(const Request& request) const {
    constexpr Bytes kScalar = 8;
    if (request.bytes <= kScalar) return false;
    switch (request.memory_class) {
      case MemoryClass::kWorkspace:
      case MemoryClass::kBuffer:
        return false;
      case MemoryClass::kInput:
        return inputs_.contains(request.bytes);
      default:
        break;
    }
    if (request.parameter != ParameterId::kNone) return IsSingle(stream_[request.parameter]);
    return stream_.SiteOf(request).phase != Phase::kLoad;
  }

  void Keep(RequestId id) { full_[static_cast<size_t>(id)] = true; }

  void KeepFull(const GraphNode& node) {
    Bytes main = 0;
    for (const RequestId id : node.forward) {
      if (stream_[id].memory_class != MemoryClass::kWorkspace) main = std::max(main, stream_[id].bytes);
    }
    const std::string& name = node.operator_name;
    const bool norm = name.find("Norm") != std::string::npos;
    const bool dropout = name.starts_with("NativeDropout");
    const bool attention = name.starts_with("ScaledDotProduct");
    for (const RequestId id : node.forward) {
      const Bytes bytes = stream_[id].bytes;
      if (dropout && bytes * 4 == main) Keep(id);
      // Indices of 8 bytes beside values of 4.
      if (name.starts_with("MaxPool") && bytes == main && node.forward.size() > 1) Keep(id);
      if ((norm || attention) && bytes * 4 < main) Keep(id);
    }
    if (name.starts_with("Embedding")) {
      for (const RequestId id : node.backward) {
        if (stream_[id].memory_class != MemoryClass::kGradient) Keep(id);
      }
    }
    if (attention) KeepAttention(node, main);
    KeepStaging(node);
    KeepEagerSoftmax(node);
  }

  void KeepStaging(const GraphNode& node) {
    for (const RequestId id : node.backward) {
      if (IsStaging(graph_, id)) Keep(id);
    }
  }

  // transformers' eager attention takes the softmax in single precision and casts its result.
  void KeepEagerSoftmax(const GraphNode& node) {
    if (!node.operator_name.starts_with("SoftmaxBackward") || node.forward.empty()) return;
    const RequestId result = node.forward.front();
    if (stream_.SiteOf(stream_[result]).text.find("eager_attention_forward") == std::string::npos) return;
    Keep(result);
    Request narrow = stream_[result];
    narrow.bytes /= 2;
    narrow.law = narrow.law.Times(1, 2);
    const RequestId copy = edit_.AllocateAfter(edit_.SpanOf(result).allocated, narrow);
    const uint32_t freed = edit_.SpanOf(result).freed;
    edit_.FreeAfter(copy, freed);
    if (node.backward.empty()) return;
    Request wide = stream_[result];
    wide.memory_class = MemoryClass::kTemporary;
    const uint32_t place = edit_.SpanOf(node.backward.front()).allocated;
    edit_.FreeAfter(edit_.AllocateBefore(place, wide), place);
  }

  // In half precision the flash kernel runs unless there is a mask; its backward sums queries' gradients in
  // single precision. Source: aten/src/ATen/native/transformers/cuda.
  void KeepAttention(const GraphNode& node, Bytes main) {
    const bool efficient = node.operator_name.starts_with("ScaledDotProductEfficient");
    const bool masked = std::any_of(node.reads.begin(), node.reads.end(), [&](RequestId id) {
      const Bytes square = length_ * length_ * 4;
      return square > 0 && stream_[id].bytes != main && stream_[id].bytes % square == 0;
    });
    size_t place = 0;
    for (const RequestId id : node.backward) {
      const Bytes bytes = stream_[id].bytes;
      const size_t at = place++;
      if (bytes * 4 < main) Keep(id);
      if (!efficient || at < 3) continue;
      if (masked) {
        // The workspace, larger by its padding.
        if (bytes > main) Keep(id);
      } else if (at > 4) {
        edit_.Remove(id);
      } else {
        Keep(id);
      }
    }
  }

  // transformers casts logits to single precision for the loss; for everybody else the loss is in their type.
  void KeepLoss() {
    for (const auto& [number, node] : graph_.nodes()) {
      const auto by_transformers = [&](RequestId id) {
        return stream_.SiteOf(stream_[id]).text.starts_with("loss/loss_utils.py");
      };
      const bool forward = !node.forward.empty() && by_transformers(node.forward.front());
      if (!forward) continue;
      for (const RequestId id : node.forward) Keep(id);
      for (const RequestId id : node.backward) Keep(id);
      if (!node.operator_name.starts_with("LogSoftmax")) continue;
      CastLogits(graph_, number, node, true, &edit_);
    }
  }

  // transformers' RMSNorm computes in single precision: its input's copy and the product are kept so.
  void KeepNorms() {
    std::vector<RequestId> call;
    SiteId last = SiteId::kNone;
    const auto module = [&](SiteId site) { return stream_[site].module_path; };
    for (const Pass& pass : graph_.passes()) {
      for (uint32_t place = pass.begin; place <= pass.end; ++place) {
        const Event& event = stream_.events[place];
        if (event.kind != EventKind::kAllocate) continue;
        const SiteId site = stream_[event.request].site;
        if (!call.empty() && module(site) != module(last)) KeepNorm(std::exchange(call, {}));
        last = site;
        if (stream_[site].module_class.ends_with("RMSNorm")) call.push_back(event.request);
      }
      if (!call.empty()) KeepNorm(std::exchange(call, {}));
    }
  }

  void KeepNorm(const std::vector<RequestId>& call) {
    if (call.size() < 4) return;  // one fused operator
    const RequestId power = call.front();
    const RequestId normed = call[call.size() - 2];
    const Bytes whole = stream_[power].bytes;
    if (stream_[normed].bytes != whole || stream_[call.back()].bytes != whole) return;
    for (size_t i = 0; i + 1 < call.size(); ++i) Keep(call[i]);
    const uint64_t first = NodeOf(stream_[power].autograd_number);
    const uint64_t scaling = NodeOf(stream_[call.back()].autograd_number);
    uint32_t end = Span::kOpen;
    for (uint64_t number = first; number < scaling; ++number) {
      const GraphNode* node = graph_.Find(number);
      if (node == nullptr) continue;
      for (const RequestId id : node->backward) Keep(id);
    }
    const GraphNode* lowest = graph_.Find(first);
    if (lowest == nullptr || lowest->backward.empty()) return;
    end = edit_.SpanOf(lowest->backward.back()).allocated;
    // The input in single precision is what is saved, not the input.
    Request copy = stream_[power];
    copy.memory_class = MemoryClass::kActivation;
    copy.saved = true;
    edit_.FreeAfter(edit_.AllocateBefore(edit_.SpanOf(power).allocated, copy), end);
    for (const RequestId id : lowest->reads) {
      if (stream_[id].bytes == whole && stream_[id].saved) edit_.FreeAfter(id, graph_.ReleasePlace(id));
    }
    // The product is cast back, and the copy is saved.
    const uint32_t scaled = edit_.SpanOf(call.back()).allocated;
    Request narrow = stream_[normed];
    narrow.bytes /= 2;
    narrow.law = narrow.law.Times(1, 2);
    const RequestId back = edit_.AllocateBefore(scaled, narrow);
    edit_.FreeAfter(back, edit_.SpanOf(normed).freed);
    edit_.FreeAfter(normed, scaled);
  }

  const Stream& stream_;
  Graph graph_;
  Edit edit_;
  std::set<Bytes> inputs_;  // sizes of floating-point inputs
  Bytes length_ = 0;        // of the sequence
  std::vector<bool> full_;  // by request: it stays in single precision
};

}  // namespace

bool IsPureHalf(const Stream& stream) {
  Bytes half = 0;
  Bytes all = 0;
  for (const Parameter& parameter : stream.parameters) {
    all += parameter.bytes;
    if (parameter.dtype.ends_with("float16")) half += parameter.bytes;  // bfloat16, too
  }
  return half > all / 2;
}

Edited ApplyPureHalf(const Stream& stream, const TechniqueOptions& /*options*/) {
  return PureHalf(stream).Apply();
}

}  // namespace vramtrace::forecast
