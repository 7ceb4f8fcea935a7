#include "analyzer/forecast/repeated_steps.h"

#include <algorithm>
#include <tuple>

namespace vramtrace::forecast {
namespace {

constexpr size_t kKept = 3;  // of a run of equal steps

// One event of a step, so that equal steps have equal lists.
using Token = std::tuple<EventKind, uint64_t, uint64_t, uint32_t>;

struct Step {
  size_t begin = 0;  // in Stream::events
  size_t end = 0;    // its kStepEnd is the last
  std::vector<Token> tokens;
  bool repeatable = true;
};

class Dropper {
 public:
  explicit Dropper(Stream* stream) : stream_(*stream), places_(stream->requests.size()) {}

  void Run() {
    Split();
    std::vector<Event> events;
    events.reserve(stream_.events.size());
    size_t equal = 1;  // steps up to here that are the same
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const bool same =
          i > 0 && step.repeatable && steps_[i - 1].repeatable && step.tokens == steps_[i - 1].tokens;
      equal = same ? equal + 1 : 1;
      if (equal > kKept) {
        StandIn(i);
        continue;
      }
      for (size_t at = step.begin; at < step.end; ++at) Keep(stream_.events[at], &events);
      last_kept_ = i;
    }
    stream_.events = std::move(events);
  }

 private:
  // Where a request was made.
  struct Place {
    size_t step = 0;
    uint32_t index = 0;  // among the allocations of the step
  };

  void Split() {
    std::vector<RequestId> made;
    const auto close = [&](size_t end) {
      steps_.back().end = end;
      made_.push_back(std::move(made));
      made.clear();
    };
    steps_.push_back({});
    for (size_t i = 0; i < stream_.events.size(); ++i) {
      const Event& event = stream_.events[i];
      Step& step = steps_.back();
      switch (event.kind) {
        case EventKind::kStepEnd:
          close(i + 1);
          steps_.push_back({i + 1, i + 1, {}, true});
          break;
        case EventKind::kAllocate: {
          const Request& request = stream_[event.request];
          places_[Raw(event.request)] = {steps_.size() - 1, static_cast<uint32_t>(made.size())};
          made.push_back(event.request);
          step.tokens.emplace_back(event.kind, static_cast<uint64_t>(request.site), request.bytes, 0);
          break;
        }
        case EventKind::kFree: {
          const Place& place = places_[Raw(event.request)];
          const size_t distance = steps_.size() - 1 - place.step;
          if (distance > 1) step.repeatable = false;
          step.tokens.emplace_back(event.kind, distance, place.index, 1);
          break;
        }
      }
    }
    close(stream_.events.size());
    stand_in_.resize(stream_.requests.size(), RequestId::kNone);
  }

  // What is alive after the step that is left out are, one for one, the requests of the last step kept.
  void StandIn(size_t step) {
    ++stream_.repeated_steps;
    const std::vector<RequestId>& here = made_[step];
    const std::vector<RequestId>& there = made_[last_kept_];
    for (size_t i = 0; i < here.size() && i < there.size(); ++i) stand_in_[Raw(here[i])] = there[i];
  }

  void Keep(Event event, std::vector<Event>* events) {
    if (event.kind == EventKind::kFree && stand_in_[Raw(event.request)] != RequestId::kNone) {
      event.request = stand_in_[Raw(event.request)];
    }
    events->push_back(event);
  }

  static size_t Raw(RequestId id) { return static_cast<size_t>(id); }

  Stream& stream_;
  std::vector<Place> places_;
  std::vector<Step> steps_;
  std::vector<std::vector<RequestId>> made_;
  std::vector<RequestId> stand_in_;
  size_t last_kept_ = 0;
};

// Rows of requests whose events are gone.
void Compact(Stream* stream) {
  std::vector<RequestId> renamed(stream->requests.size(), RequestId::kNone);
  std::vector<Request> requests;
  for (Event& event : stream->events) {
    if (event.kind == EventKind::kStepEnd) continue;
    RequestId& id = renamed[static_cast<size_t>(event.request)];
    if (id == RequestId::kNone) {
      id = RequestId{static_cast<uint32_t>(requests.size())};
      requests.push_back((*stream)[event.request]);
    }
    event.request = id;
  }
  stream->requests = std::move(requests);
}

}  // namespace

void DropRepeatedSteps(Stream* stream) {
  Dropper(stream).Run();
  Compact(stream);
}

}  // namespace vramtrace::forecast
