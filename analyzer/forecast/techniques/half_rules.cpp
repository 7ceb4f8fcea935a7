#include "analyzer/forecast/techniques/half_rules.h"

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
