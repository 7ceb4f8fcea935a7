// Cross-entropy a chunk of the rows at a time. As PyTorch has it, forward keeps the logarithms of all
// probabilities and backward makes two more matrices of their size; in chunks that are computed again in
// backward, one chunk's worth of each is there at once, and the chunks' gradients are joined at the end.
// Source: aten/src/ATen/native/LossNLL.cpp; torch/utils/checkpoint.py.

#include <algorithm>

#include "analyzer/forecast/techniques/passes.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

// The nodes of one cross-entropy.
struct Loss {
  RequestId logarithms = RequestId::kNone;  // of probabilities: kept by forward
  RequestId cast = RequestId::kNone;        // logits in single precision, made inside of the loss; or none
  RequestId of_loss = RequestId::kNone;     // backward: gradient of the logarithms
  RequestId of_logits = RequestId::kNone;   // backward: gradient of the logits
};

class ChunkedLoss {
 public:
  ChunkedLoss(const Stream& stream, uint64_t chunks)
      : stream_(stream), chunks_(chunks), graph_(stream), edit_(stream) {
    // A program may compute its loss outside of any module.
    for (const Event& event : stream.events) {
      if (event.kind != EventKind::kAllocate) continue;
      const bool forward = event.phase == Phase::kForward || event.phase == Phase::kScript;
      const uint64_t node = NodeOf(stream[event.request].autograd_number);
      if (forward && node != 0) made_[node].push_back(event.request);
    }
  }

  Edited Apply() && {
    size_t found = 0;
    for (const auto& [number, node] : graph_.nodes()) {
      if (!node.operator_name.starts_with("LogSoftmaxBackward") || MadeFor(number).empty()) continue;
      Loss loss;
      if (!Find(number, node, &loss)) continue;
      Divide(loss);
      ++found;
    }
    if (found == 0) return "no cross-entropy over logits was recorded with its backward";
    return std::move(edit_).Finish();
  }

 private:
  // In forward, by the operator of a node.
  [[nodiscard]] std::vector<RequestId> MadeFor(uint64_t node) const {
    const auto found = made_.find(node);
    return found == made_.end() ? std::vector<RequestId>() : found->second;
  }

  [[nodiscard]] RequestId OfSize(const std::vector<RequestId>& requests, Bytes bytes) const {
    const auto found = std::find_if(requests.begin(), requests.end(),
                                    [&](RequestId id) { return stream_[id].bytes == bytes; });
    return found == requests.end() ? RequestId::kNone : *found;
  }

  bool Find(uint64_t number, const GraphNode& node, Loss* loss) const {
    loss->logarithms = MadeFor(number).front();
    const Bytes bytes = stream_[loss->logarithms].bytes;
    loss->of_logits = OfSize(node.backward, bytes);
    const GraphNode* after = graph_.Find(number + 1);
    if (after != nullptr && after->operator_name.starts_with("NllLoss")) {
      loss->of_loss = OfSize(after->backward, bytes);
    }
    const GraphNode* before = graph_.Find(number - 1);
    if (before != nullptr && before->operator_name.starts_with("ToCopy")) {
      const RequestId cast = OfSize(MadeFor(number - 1), bytes);
      const bool inside = cast != RequestId::kNone && stream_.SiteOf(stream_[cast]).text ==
                                                          stream_.SiteOf(stream_[loss->logarithms]).text;
      if (inside) loss->cast = cast;
    }
    return loss->of_logits != RequestId::kNone && loss->of_loss != RequestId::kNone;
  }

  [[nodiscard]] Request Chunk(RequestId of) const {
    Request chunk = stream_[of];
    chunk.bytes = (chunk.bytes + chunks_ - 1) / chunks_;
    chunk.law = chunk.law.Times(1, chunks_);
    chunk.memory_class = MemoryClass::kTemporary;
    return chunk;
  }

  // What the loss reads: the newest result before it that is as large, or half where the loss casts it.
  [[nodiscard]] RequestId LogitsOf(const Loss& loss) const {
    const Bytes bytes = stream_[loss.logarithms].bytes;
    const RequestId first = loss.cast == RequestId::kNone ? loss.logarithms : loss.cast;
    const uint32_t made = edit_.SpanOf(first).allocated;
    for (uint32_t place = made; place-- > 0;) {
      const Event& event = stream_.events[place];
      if (event.kind == EventKind::kStepEnd) break;
      if (event.kind != EventKind::kAllocate || edit_.SpanOf(event.request).freed < made) continue;
      const Bytes logits = stream_[event.request].bytes;
      if (logits == bytes || (loss.cast != RequestId::kNone && 2 * logits == bytes)) return event.request;
    }
    return RequestId::kNone;
  }

  void Divide(const Loss& loss) {
    // Forward: a chunk's logarithms go with its share of the loss.
    const uint32_t made = edit_.SpanOf(loss.logarithms).allocated;
    for (const RequestId id : {loss.cast, loss.logarithms}) {
      if (id == RequestId::kNone) continue;
      edit_.Scale(id, 1, chunks_);
      edit_.FreeAfter(id, made);
    }
    const uint32_t place = edit_.SpanOf(loss.of_logits).allocated;
    const Request chunk = Chunk(loss.logarithms);
    for (uint64_t i = 0; i < chunks_; ++i) {
      const RequestId again = edit_.AllocateBefore(place, chunk);
      const RequestId of_loss = edit_.AllocateBefore(place, chunk);
      const RequestId of_logits = edit_.AllocateBefore(place, chunk);
      edit_.FreeBefore(of_loss, place);
      edit_.FreeBefore(again, place);
      edit_.FreeAfter(of_logits, place);
    }
    // Computing a chunk again needs its rows.
    const RequestId logits = LogitsOf(loss);
    if (logits != RequestId::kNone && edit_.SpanOf(logits).freed < place) edit_.FreeBefore(logits, place);
    edit_.Remove(loss.of_loss);
  }

  const Stream& stream_;
  uint64_t chunks_;
  Graph graph_;
  Edit edit_;
  std::unordered_map<uint64_t, std::vector<RequestId>> made_;  // by node
};

}  // namespace

// Several softmaxes of logits, or one that backward computes again.
bool IsChunkedLoss(const Stream& stream) {
  return std::any_of(stream.sites.begin(), stream.sites.end(), [](const Site& site) {
    return site.phase == Phase::kRecompute && site.operator_name.starts_with("LogSoftmax");
  });
}

Edited ApplyChunkedLoss(const Stream& stream, const TechniqueOptions& options) {
  return ChunkedLoss(stream, options.chunks).Apply();
}

}  // namespace vramtrace::forecast
