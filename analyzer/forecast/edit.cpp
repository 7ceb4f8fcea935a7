#include "analyzer/forecast/edit.h"

#include <algorithm>

namespace vramtrace::forecast {
namespace {

uint32_t Raw(RequestId id) { return static_cast<uint32_t>(id); }

}  // namespace

std::vector<Span> SpansOf(const Stream& stream) {
  std::vector<Span> spans(stream.requests.size());
  for (uint32_t i = 0; i < stream.events.size(); ++i) {
    const Event& event = stream.events[i];
    if (event.kind == EventKind::kAllocate) spans[Raw(event.request)].allocated = i;
    if (event.kind == EventKind::kFree) spans[Raw(event.request)].freed = i;
  }
  return spans;
}

Edit::Edit(const Stream& base)
    : base_(base),
      spans_(SpansOf(base)),
      requests_(base.requests),
      removed_(base.requests.size()),
      moved_(base.requests.size()),
      free_at_(base.requests.size(), Span::kOpen) {}

void Edit::Remove(RequestId id) { removed_[Raw(id)] = true; }

void Edit::Scale(RequestId id, uint64_t numerator, uint64_t denominator) {
  Request& request = requests_[Raw(id)];
  request.bytes = (request.bytes * numerator + denominator - 1) / denominator;
  request.law = request.law.Times(numerator, denominator);
}

void Edit::Resize(RequestId id, Bytes bytes) {
  Request& request = requests_[Raw(id)];
  request.bytes = bytes;
  request.law = SizeLaw::Fixed(bytes);
}

void Edit::FreeAfter(RequestId id, uint32_t place) {
  DropFree(id);
  if (place != Span::kOpen) Insert(place, false, EventKind::kFree, id);
}

void Edit::FreeBefore(RequestId id, uint32_t place) {
  DropFree(id);
  Insert(place, true, EventKind::kFree, id);
}

void Edit::DropFree(RequestId id) {
  moved_[Raw(id)] = true;
  uint32_t& at = free_at_[Raw(id)];
  if (at != Span::kOpen) inserted_[at].event.request = RequestId::kNone;
  at = Span::kOpen;
}

RequestId Edit::AllocateAfter(uint32_t place, const Request& request) {
  const RequestId id{static_cast<uint32_t>(requests_.size())};
  requests_.push_back(request);
  removed_.push_back(false);
  moved_.push_back(true);
  free_at_.push_back(Span::kOpen);
  Insert(place, false, EventKind::kAllocate, id);
  return id;
}

RequestId Edit::AllocateBefore(uint32_t place, const Request& request) {
  const RequestId id = AllocateAfter(place, request);
  inserted_.back().before = true;
  return id;
}

void Edit::Insert(uint32_t place, bool before, EventKind kind, RequestId id) {
  if (kind == EventKind::kFree) free_at_[Raw(id)] = static_cast<uint32_t>(inserted_.size());
  const Phase phase = place < base_.events.size() ? base_.events[place].phase : Phase::kScript;
  inserted_.push_back({place, before, {kind, phase, id}});
}

Stream Edit::Finish() && {
  std::stable_sort(inserted_.begin(), inserted_.end(), [](const Inserted& a, const Inserted& b) {
    return a.place != b.place ? a.place < b.place : a.before && !b.before;
  });
  Stream out;
  out.facts = base_.facts;
  out.batch = base_.batch;
  out.sites = base_.sites;
  out.parameters = base_.parameters;
  out.modules = base_.modules;
  out.state_keys = base_.state_keys;
  out.repeated_steps = base_.repeated_steps;
  out.events.reserve(base_.events.size() + inserted_.size());

  // Requests keep their ids; those that are gone stay as rows without events, which costs nothing.
  out.requests = std::move(requests_);
  const auto add = [&](const Event& event) {
    const bool step = event.kind == EventKind::kStepEnd;
    const bool gone = !step && (event.request == RequestId::kNone || removed_[Raw(event.request)]);
    if (!gone) out.events.push_back(event);
  };
  size_t next = 0;
  for (uint32_t i = 0; i < base_.events.size(); ++i) {
    for (; next < inserted_.size() && inserted_[next].place == i && inserted_[next].before; ++next) {
      add(inserted_[next].event);
    }
    const Event& event = base_.events[i];
    const bool dropped = event.kind == EventKind::kFree && moved_[Raw(event.request)];
    if (!dropped) add(event);
    for (; next < inserted_.size() && inserted_[next].place == i; ++next) add(inserted_[next].event);
  }
  return out;
}

}  // namespace vramtrace::forecast
