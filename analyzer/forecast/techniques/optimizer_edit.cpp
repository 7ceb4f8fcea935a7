#include "analyzer/forecast/techniques/optimizer_edit.h"

#include <algorithm>

namespace vramtrace::forecast {
namespace {

constexpr uint64_t kSiteKey = 0x6f7074696d697a65;  // of the site that stands for the optimizer's step

bool BelongsToOptimizer(const Stream& stream, const Request& request) {
  return stream.SiteOf(request).phase == Phase::kOptimizer;
}

}  // namespace

std::vector<ParameterId> TrainedParameters(const Stream& stream) {
  std::vector<ParameterId> trained;
  for (uint32_t i = 0; i < stream.parameters.size(); ++i) {
    if (stream.parameters[i].trained) trained.push_back(ParameterId{i});
  }
  return trained;
}

std::vector<OptimizerPlace> OptimizerPlaces(const Stream& stream) {
  struct StepPlaces {
    uint32_t optimizer = Span::kOpen;  // its first event
    uint32_t zeroed = Span::kOpen;     // the first gradient that goes after backward
    uint32_t last = Span::kOpen;       // the last event of backward
  };
  std::vector<OptimizerPlace> places;
  StepPlaces found;
  uint32_t step = 0;
  for (uint32_t i = 0; i < stream.events.size(); ++i) {
    const Event& event = stream.events[i];
    if (event.kind == EventKind::kStepEnd) {
      const uint32_t after = found.last == Span::kOpen ? i : found.last + 1;
      const uint32_t place = found.optimizer != Span::kOpen ? found.optimizer
                             : found.zeroed != Span::kOpen  ? found.zeroed
                                                            : after;
      places.push_back({step, place, places.empty()});
      ++step;
      found = {};
      continue;
    }
    const Request& request = stream[event.request];
    if (event.phase == Phase::kBackward || event.phase == Phase::kClip) {
      found.last = i;
      found.zeroed = Span::kOpen;
    }
    if (event.kind == EventKind::kAllocate && BelongsToOptimizer(stream, request)) {
      found.optimizer = std::min(found.optimizer, i);
    }
    const bool gone = event.kind == EventKind::kFree && request.memory_class == MemoryClass::kGradient;
    if (gone && event.phase != Phase::kBackward && found.last != Span::kOpen) {
      found.zeroed = std::min(found.zeroed, i);
    }
  }
  return places;
}

OptimizerEdit::OptimizerEdit(const Stream& stream)
    : edit_(stream),
      places_(OptimizerPlaces(stream)),
      trained_(TrainedParameters(stream)),
      keys_(stream.state_keys),
      site_{static_cast<uint32_t>(stream.sites.size())} {}

void OptimizerEdit::RemoveTemporaries() {
  for (uint32_t i = 0; i < stream().requests.size(); ++i) {
    const Request& request = stream().requests[i];
    if (request.memory_class == MemoryClass::kOptimizerState) continue;
    if (BelongsToOptimizer(stream(), request)) edit_.Remove(RequestId{i});
  }
}

void OptimizerEdit::RemoveState() {
  for (uint32_t i = 0; i < stream().requests.size(); ++i) {
    if (stream().requests[i].memory_class == MemoryClass::kOptimizerState) edit_.Remove(RequestId{i});
  }
}

void OptimizerEdit::AddState(const OptimizerPlace& at, ParameterId parameter, Bytes bytes,
                             std::string_view key) {
  const RequestId id = Take(at, bytes);
  Request& request = edit_.Change(id);
  request.memory_class = MemoryClass::kOptimizerState;
  request.confidence = Confidence::kHigh;
  request.parameter = parameter;
  auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found == keys_.end()) found = keys_.insert(keys_.end(), std::string(key));
  request.state_key = static_cast<uint16_t>(found - keys_.begin());
}

RequestId OptimizerEdit::Take(const OptimizerPlace& at, Bytes bytes) {
  Request request;
  request.bytes = bytes;
  request.law = SizeLaw::Fixed(bytes);
  request.site = site_;
  request.step = at.step;
  request.memory_class = MemoryClass::kTemporary;
  request.confidence = Confidence::kHigh;
  return edit_.AllocateBefore(at.place, request);
}

Stream OptimizerEdit::Finish() && {
  Stream stream = std::move(edit_).Finish();
  Site site;
  site.key = kSiteKey;
  site.phase = Phase::kOptimizer;
  site.text = "the optimizer's step";
  stream.sites.push_back(site);
  stream.state_keys = std::move(keys_);
  return stream;
}

}  // namespace vramtrace::forecast
