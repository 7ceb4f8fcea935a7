#include "analyzer/forecast/techniques/half_rules.h"

#include <algorithm>

#include "preload/catalogue/catalogue.h"

namespace vramtrace::forecast {

bool IsSingle(const Parameter& parameter) { return parameter.dtype.ends_with("float32"); }

bool IsStaging(const Graph& graph, RequestId id) {
  constexpr Bytes kCounters = 4096;
  const Stream& stream = graph.stream();
  const Span& span = graph.spans()[static_cast<size_t>(id)];
  const uint32_t next = span.allocated + 1;
  if (next + 2 >= stream.events.size() || span.freed != next + 2) return false;
  const Event& counters = stream.events[next];
  const Event& gone = stream.events[next + 1];
  return counters.kind == EventKind::kAllocate && gone.kind == EventKind::kFree &&
         gone.request == counters.request && stream[counters.request].bytes <= kCounters &&
         stream[counters.request].memory_class == MemoryClass::kTemporary && stream[id].bytes > kCounters;
}

void RemoveLayoutCopies(const Graph& graph, Edit* edit) {
  const RunFacts& facts = graph.stream().facts;
  const catalogue::Gpu* gpu = catalogue::FindGpu(facts.gpu);
  const bool recent = facts.pytorch.major > 2 || facts.pytorch.minor >= 5;
  const bool cudnn = gpu != nullptr && (gpu->compute_major == 9 || gpu->compute_major == 10) && recent;
  if (!cudnn) return;
  constexpr uint64_t kFarthest = 4;  // nodes between attention and the product
  for (const auto& [number, node] : graph.nodes()) {
    if (!node.operator_name.starts_with("ScaledDotProductEfficient")) continue;
    Bytes result = 0;
    for (const RequestId id : node.forward) result = std::max(result, graph.stream()[id].bytes);
    for (uint64_t next = number + 1; next <= number + kFarthest; ++next) {
      const GraphNode* after = graph.Find(next);
      if (after == nullptr || after->forward.empty()) continue;
      const RequestId made = after->forward.front();
      const bool copy = graph.stream()[made].bytes == result && !IsProduct(after->operator_name);
      if (copy) edit->Remove(made);
      break;
    }
  }
}

void CastLogits(const Graph& graph, uint64_t number, const GraphNode& node, bool held, Edit* edit) {
  const Stream& stream = graph.stream();
  if (node.forward.empty() || node.backward.empty()) return;
  const RequestId result = node.forward.front();
  Request logits = stream[result];
  logits.memory_class = MemoryClass::kTemporary;
  logits.saved = false;
  const uint32_t place = edit->SpanOf(result).allocated;
  const Pass* pass = graph.PassOf(number);
  edit->FreeAfter(edit->AllocateBefore(place, logits), held && pass != nullptr ? pass->end : place);
  const RequestId gradient = node.backward.back();
  Request narrow = stream[gradient];
  narrow.bytes /= 2;
  narrow.law = narrow.law.Times(1, 2);
  uint32_t after = edit->SpanOf(gradient).allocated + 1;
  while (after < stream.events.size() && stream.events[after].kind == EventKind::kFree) ++after;
  const uint32_t freed = edit->SpanOf(gradient).freed;
  const RequestId copy = edit->AllocateBefore(after, narrow);
  edit->FreeBefore(gradient, after);
  edit->FreeAfter(copy, freed);
}

}  // namespace vramtrace::forecast
