#include "analyzer/forecast/unfinished_step.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "analyzer/forecast/edit.h"

namespace vramtrace::forecast {
namespace {

// Events of one step and its requests in the order of their allocation.
struct Step {
  size_t begin = 0;  // in Stream::events
  size_t end = 0;
  std::vector<RequestId> made;
};

Step StepIn(const Stream& stream, size_t begin, size_t end) {
  Step step{begin, end, {}};
  for (size_t i = begin; i < end; ++i) {
    if (stream.events[i].kind == EventKind::kAllocate) step.made.push_back(stream.events[i].request);
  }
  return step;
}

// The newest whole step and what came after it.
bool Split(const Stream& stream, Step* whole, Step* partial) {
  size_t ends[2] = {0, 0};  // one past the last two kStepEnd
  int found = 0;
  for (size_t i = stream.events.size(); i > 0 && found < 2; --i) {
    if (stream.events[i - 1].kind == EventKind::kStepEnd) ends[found++] = i;
  }
  if (found == 0) return false;
  *whole = StepIn(stream, ends[1], ends[0] - 1);
  *partial = StepIn(stream, ends[0], stream.events.size());
  return !partial->made.empty();
}

// The first step begins with loading: leaves out what was made before the step's own first request.
void SkipLoading(const Stream& stream, const Step& partial, Step* whole) {
  const SiteId first = stream[partial.made.front()].site;
  const auto begin = std::find_if(whole->made.begin(), whole->made.end(),
                                  [&](RequestId id) { return stream[id].site == first; });
  whole->made.erase(whole->made.begin(), begin);
}

// State that the optimizer made in the whole step and keeps is there already.
bool IsThere(const Request& request, bool freed) {
  return request.memory_class == MemoryClass::kOptimizerState && !freed;
}

struct Ratio {
  uint64_t numerator = 1;
  uint64_t denominator = 1;
};

// Of the sizes that can depend on the batch, over the requests that both made. The last one of `partial` was
// refused: its site is not of the step before.
bool Compare(const Stream& stream, const Step& whole, const Step& partial, Ratio* ratio) {
  if (whole.made.size() < partial.made.size()) return false;
  Bytes here = 0;
  Bytes there = 0;
  for (size_t i = 0; i + 1 < partial.made.size(); ++i) {
    const Request& now = stream[partial.made[i]];
    const Request& before = stream[whole.made[i]];
    if (now.site != before.site) return false;
    if (now.law.basis == LawBasis::kFixed) continue;
    here += now.bytes;
    there += before.bytes;
  }
  if (here != 0 && there != 0) {
    const Bytes common = std::gcd(here, there);
    *ratio = {here / common, there / common};
  }
  return true;
}

}  // namespace

bool FinishStep(Stream* stream) {
  Step whole;
  Step partial;
  Ratio ratio;
  if (!Split(*stream, &whole, &partial)) return false;
  SkipLoading(*stream, partial, &whole);
  if (!Compare(*stream, whole, partial, &ratio)) return false;

  // What the whole step made is, in this one, made by the same place of the order.
  std::unordered_map<uint32_t, RequestId> now;
  size_t at = whole.begin;
  for (size_t made = 0; at < whole.end && made < partial.made.size(); ++at) {
    const Event& event = stream->events[at];
    if (event.kind != EventKind::kAllocate || event.request != whole.made[made]) continue;
    now[static_cast<uint32_t>(event.request)] = partial.made[made++];
  }
  const std::vector<Span> spans = SpansOf(*stream);
  // The refused request is what the whole step asked for in its place.
  const uint32_t step = (*stream)[partial.made.back()].step;
  const Request refused = (*stream)[partial.made.back()];
  (*stream)[partial.made.back()] = (*stream)[whole.made[partial.made.size() - 1]];
  Request& replaced = (*stream)[partial.made.back()];
  replaced.step = step;
  replaced.law = replaced.law.basis == LawBasis::kFixed ? SizeLaw::Fixed(refused.bytes) : refused.law;
  replaced.bytes = refused.bytes;

  for (; at < whole.end; ++at) {
    Event event = stream->events[at];
    const auto old = static_cast<uint32_t>(event.request);
    if (event.kind == EventKind::kAllocate) {
      Request request = (*stream)[event.request];
      if (IsThere(request, spans[old].freed != Span::kOpen)) continue;
      request.step = step;
      if (request.law.basis != LawBasis::kFixed) {
        request.law = request.law.Times(ratio.numerator, ratio.denominator);
        request.bytes = (request.bytes * ratio.numerator + ratio.denominator - 1) / ratio.denominator;
      }
      event.request = RequestId{static_cast<uint32_t>(stream->requests.size())};
      now[old] = event.request;
      stream->requests.push_back(request);
    } else {
      // Older than the whole step: here that is what the whole step made in its place.
      const auto mapped = now.find(old);
      if (mapped == now.end()) continue;
      event.request = mapped->second;
    }
    stream->events.push_back(event);
  }
  stream->events.push_back({});
  return true;
}

}  // namespace vramtrace::forecast
