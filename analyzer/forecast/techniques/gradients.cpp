// When gradients are there: how they are cleared, how many batches they gather, and whose memory they are.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/forecast/techniques/optimizer_edit.h"
#include "analyzer/forecast/techniques/passes.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr const char* kNoGradients = "no gradient is named in the trace";

std::vector<RequestId> GradientsOf(const Stream& stream) {
  std::vector<RequestId> found;
  for (const Event& event : stream.events) {
    if (event.kind != EventKind::kAllocate || event.phase != Phase::kBackward) continue;
    const Request& request = stream[event.request];
    const bool named = request.parameter != ParameterId::kNone;
    if (named && request.memory_class == MemoryClass::kGradient) found.push_back(event.request);
  }
  return found;
}

// Where each step ends; one that did not is left out.
std::vector<uint32_t> EndsOfSteps(const Stream& stream) {
  std::vector<uint32_t> ends;
  for (uint32_t i = 0; i < stream.events.size(); ++i) {
    if (stream.events[i].kind == EventKind::kStepEnd) ends.push_back(i);
  }
  return ends;
}

// Requests of backward by what they are the same as in another step.
class SameInEveryStep {
 public:
  explicit SameInEveryStep(const Stream& stream) : stream_(stream) {
    for (const Event& event : stream.events) {
      if (event.kind != EventKind::kAllocate || event.phase != Phase::kBackward) continue;
      const Request& request = stream[event.request];
      by_place_[{request.site, request.ordinal, request.step}] = event.request;
    }
  }
  [[nodiscard]] RequestId Find(const Request& request, uint32_t step) const {
    const auto found = by_place_.find({request.site, request.ordinal, step});
    if (found == by_place_.end() || stream_[found->second].bytes != request.bytes) return RequestId::kNone;
    return found->second;
  }

 private:
  const Stream& stream_;
  std::map<std::tuple<SiteId, uint32_t, uint32_t>, RequestId> by_place_;
};

// After the events of the node that made it: its own requests, then what it lets go of.
uint32_t AfterNode(const Stream& stream, uint32_t place, const Request& request) {
  const std::vector<Event>& events = stream.events;
  ++place;
  while (place < events.size() && events[place].kind == EventKind::kAllocate &&
         stream[events[place].request].autograd_number == request.autograd_number) {
    ++place;
  }
  while (place < events.size() && events[place].kind == EventKind::kFree) ++place;
  return place;
}

// Of `steps` micro-batches in place of one batch. The law's batch is then the micro-batch's.
void Divide(const Stream& stream, uint64_t steps, Request* request) {
  SizeLaw& law = request->law;
  if (law.slope == 0 && law.square == 0) return;
  const auto times = static_cast<int64_t>(steps);
  if (law.square != 0) {
    law.fixed *= times;
    law.slope *= times;
    law.divisor *= steps;
  }
  law.fixed *= times;
  law.divisor *= steps;
  request->bytes = law.At(stream.batch);
}

}  // namespace

// No gradient waits through the forward of another step.
bool GradientsGoRightAway(const Stream& stream) {
  enum class Age : uint8_t { kNone, kOfThisStep, kOlder };
  std::vector<Age> alive(stream.requests.size(), Age::kNone);
  size_t older = 0;
  bool seen = false;
  for (const Event& event : stream.events) {
    if (event.kind == EventKind::kStepEnd) {
      for (Age& age : alive) {
        if (age == Age::kOfThisStep) ++older;
        if (age != Age::kNone) age = Age::kOlder;
      }
      continue;
    }
    Age& age = alive[static_cast<size_t>(event.request)];
    if (event.kind == EventKind::kFree) {
      if (age == Age::kOlder) --older;
      age = Age::kNone;
    } else if (stream[event.request].memory_class == MemoryClass::kGradient) {
      age = Age::kOfThisStep;
      seen = true;
    } else if (older > 0 && event.phase == Phase::kForward &&
               stream.SiteOf(stream[event.request]).has_module) {
      return false;
    }
  }
  return seen;
}

// Optimizer.zero_grad(set_to_none=True) right after step(). Where gradients are kept and filled with zeros,
// a later step's backward makes them once more, for a moment: that is where they are made now.
Edited ApplySetToNone(const Stream& stream, const TechniqueOptions& /*options*/) {
  const std::vector<RequestId> gradients = GradientsOf(stream);
  if (gradients.empty()) return kNoGradients;
  const std::vector<uint32_t> ends = EndsOfSteps(stream);
  if (ends.empty()) return "no optimizer step was completed";
  const SameInEveryStep same(stream);
  Edit edit(stream);
  for (const RequestId id : gradients) {
    const Request& request = stream[id];
    const uint32_t freed = edit.SpanOf(id).freed;
    for (size_t step = request.step; step < ends.size(); ++step) {
      if (step == request.step) {
        if (freed > ends[step]) edit.FreeAfter(id, ends[step]);
        continue;
      }
      if (freed < ends[step - 1]) break;
      const RequestId again = same.Find(request, static_cast<uint32_t>(step));
      // A step that frees the gradient before its backward makes its own.
      if (again == RequestId::kNone || stream[again].memory_class == MemoryClass::kGradient) continue;
      edit.Change(again).memory_class = MemoryClass::kGradient;
      edit.Change(again).parameter = request.parameter;
      edit.FreeAfter(again, ends[step]);
    }
  }
  return std::move(edit).Finish();
}

namespace {

bool IsDataParallel(const Stream& stream) {
  return std::any_of(stream.modules.begin(), stream.modules.end(),
                     [](const Module& module) { return module.class_name == "DistributedDataParallel"; });
}

}  // namespace

// No gradient that backward made waits for the optimizer: they are parts of the buckets.
bool HasBucketView(const Stream& stream) {
  if (!IsDataParallel(stream)) return false;
  const std::vector<Span> spans = SpansOf(stream);
  const std::vector<RequestId> gradients = GradientsOf(stream);
  return std::none_of(gradients.begin(), gradients.end(), [&](RequestId id) {
    const uint32_t freed = spans[static_cast<size_t>(id)].freed;
    return freed == Span::kOpen || stream.events[freed].phase != Phase::kBackward;
  });
}

// The reducer copies a gradient into its bucket as soon as it is there, and puts the bucket's part in its
// place. Source: torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready_dense.
Edited ApplyBucketView(const Stream& stream, const TechniqueOptions& /*options*/) {
  if (!IsDataParallel(stream)) return "the model is not wrapped in DistributedDataParallel";
  const std::vector<RequestId> gradients = GradientsOf(stream);
  if (gradients.empty()) return kNoGradients;
  Edit edit(stream);
  for (const RequestId id : gradients) {
    edit.FreeBefore(id, AfterNode(stream, edit.SpanOf(id).allocated, stream[id]));
    edit.Change(id).memory_class = MemoryClass::kTemporary;
  }
  return std::move(edit).Finish();
}

bool IsAccumulating(const Stream& stream) {
  const Graph graph(stream);
  size_t passes = 0;
  uint32_t step = 0;
  for (const Pass& pass : graph.passes()) {
    const uint32_t of = stream[stream.events[pass.begin].request].step;
    passes = of == step ? passes + 1 : 1;
    step = of;
    if (passes > 1) return true;
  }
  return false;
}

// As many micro-batches to a step. The first recorded step keeps its optimizer, which makes the state; the
// steps after it become the micro-batches of one: whatever their number, the first has no gradients yet and
// the others do.
Edited ApplyAccumulation(const Stream& stream, const TechniqueOptions& options) {
  if (stream.batch == 0) return "the batch of the run is not known";
  if (stream.batch < options.steps) {
    return fmt::format("a batch of {} cannot be divided by {}", stream.batch, options.steps);
  }
  constexpr size_t kFirst = 1;  // step that becomes the first micro-batch
  const std::vector<uint32_t> ends = EndsOfSteps(stream);
  if (ends.size() < kFirst + 2) return "fewer than three optimizer steps were recorded";
  const std::vector<RequestId> gradients = GradientsOf(stream);
  if (gradients.empty()) return kNoGradients;
  const size_t last = ends.size() - 1;
  const SameInEveryStep same(stream);
  Edit edit(stream);
  for (uint32_t i = 0; i < stream.requests.size(); ++i) {
    Divide(stream, options.steps, &edit.Change(RequestId{i}));
    const Request& request = stream.requests[i];
    const bool inner = request.step >= kFirst && request.step < last;
    const bool of_optimizer = stream.SiteOf(request).phase == Phase::kOptimizer;
    if (inner && of_optimizer && request.memory_class != MemoryClass::kOptimizerState) {
      edit.Remove(RequestId{i});
    }
  }
  std::vector<Span> until(stream.parameters.size());  // of the gradient that the last step's backward made
  for (const RequestId id : gradients) {
    if (stream[id].step == last) until[static_cast<size_t>(stream[id].parameter)] = edit.SpanOf(id);
  }
  for (const RequestId id : gradients) {
    const Request& request = stream[id];
    if (request.step < kFirst || request.step > last) continue;
    if (request.step > kFirst) {
      // It is added to the one that is there.
      edit.FreeBefore(id, AfterNode(stream, edit.SpanOf(id).allocated, request));
      edit.Change(id).memory_class = MemoryClass::kTemporary;
      continue;
    }
    const Span& end = until[static_cast<size_t>(request.parameter)];
    if (end.allocated != Span::kOpen) edit.FreeAfter(id, end.freed);
  }
  return std::move(edit).Finish();
}

}  // namespace vramtrace::forecast
