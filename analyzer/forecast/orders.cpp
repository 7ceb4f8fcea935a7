#include "analyzer/forecast/orders.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

namespace vramtrace::forecast {
namespace {

// At most so many events are replayed for all orders together: half a second.
constexpr size_t kMostEvents = 2'000'000;
constexpr uint32_t kMostOrders = 10;

// The requests of one step in the order of their allocation.
struct Step {
  std::vector<uint32_t> requests;
  std::vector<std::tuple<EventKind, uint64_t>> shape;  // its events without sizes
  Bytes bytes = 0;
};

std::vector<Step> StepsOf(const Stream& stream) {
  std::vector<Step> steps(1);
  std::vector<uint32_t> index(stream.requests.size());
  std::vector<size_t> made_in(stream.requests.size());
  for (const Event& event : stream.events) {
    Step& step = steps.back();
    if (event.kind == EventKind::kStepEnd) {
      steps.emplace_back();
      continue;
    }
    const auto id = static_cast<uint32_t>(event.request);
    if (event.kind == EventKind::kAllocate) {
      index[id] = static_cast<uint32_t>(step.requests.size());
      made_in[id] = steps.size() - 1;
      step.requests.push_back(id);
      step.bytes += stream.requests[id].bytes;
      step.shape.emplace_back(event.kind, static_cast<uint64_t>(stream.requests[id].site));
    } else {
      const uint64_t distance = steps.size() - 1 - made_in[id];
      step.shape.emplace_back(event.kind, (distance << 32) | index[id]);
    }
  }
  return steps;
}

// Groups of steps that may be exchanged: the largest one.
std::vector<size_t> Exchangeable(const std::vector<Step>& steps) {
  std::map<std::vector<std::tuple<EventKind, uint64_t>>, std::vector<size_t>> groups;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].requests.empty()) groups[steps[i].shape].push_back(i);
  }
  std::vector<size_t> largest;
  for (auto& [shape, group] : groups) {
    if (group.size() > largest.size()) largest = std::move(group);
  }
  const bool differ = std::any_of(largest.begin(), largest.end(),
                                  [&](size_t i) { return steps[i].bytes != steps[largest.front()].bytes; });
  return largest.size() > 1 && differ ? largest : std::vector<size_t>();
}

// `stream` with the sizes of step `from[k]` in the place of step `places[k]`.
Stream Exchanged(const Stream& stream, const std::vector<Step>& steps, const std::vector<size_t>& places,
                 const std::vector<size_t>& from) {
  Stream out = stream;
  for (size_t k = 0; k < places.size(); ++k) {
    const std::vector<uint32_t>& here = steps[places[k]].requests;
    const std::vector<uint32_t>& there = steps[from[k]].requests;
    for (size_t i = 0; i < here.size(); ++i) {
      out.requests[here[i]].bytes = stream.requests[there[i]].bytes;
      out.requests[here[i]].law = stream.requests[there[i]].law;
    }
  }
  return out;
}

std::vector<size_t> OrderOf(uint32_t number, const std::vector<Step>& steps,
                            const std::vector<size_t>& places) {
  std::vector<size_t> order = places;
  const auto smaller = [&](size_t a, size_t b) { return steps[a].bytes < steps[b].bytes; };
  switch (number) {
    case 0:
      std::stable_sort(order.begin(), order.end(), smaller);
      break;
    case 1:
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return smaller(b, a); });
      break;
    case 2: {  // small and large in turn
      std::vector<size_t> sorted = order;
      std::stable_sort(sorted.begin(), sorted.end(), smaller);
      for (size_t i = 0, low = 0, high = sorted.size(); i < order.size(); ++i) {
        order[i] = i % 2 == 0 ? sorted[low++] : sorted[--high];
      }
      break;
    }
    default: {
      std::mt19937_64 random(number);
      for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    }
  }
  return order;
}

}  // namespace

Orders TryOrders(const Stream& stream, const ReplayOptions& options, const Outcome& recorded) {
  Orders orders;
  const std::vector<Step> steps = StepsOf(stream);
  const std::vector<size_t> places = Exchangeable(steps);
  if (places.empty()) return orders;
  orders.lowest = orders.highest = recorded.reserved.bytes;
  orders.worst = stream;
  orders.outcome = recorded;
  const auto affordable = static_cast<uint32_t>(kMostEvents / std::max<size_t>(stream.events.size(), 1));
  const uint32_t count = std::clamp(affordable, uint32_t{3}, kMostOrders);
  for (; orders.tried < count; ++orders.tried) {
    Stream exchanged = Exchanged(stream, steps, places, OrderOf(orders.tried, steps, places));
    Outcome outcome = Replay(exchanged, options);
    orders.lowest = std::min(orders.lowest, outcome.reserved.bytes);
    if (outcome.reserved.bytes <= orders.highest) continue;
    orders.highest = outcome.reserved.bytes;
    orders.worst = std::move(exchanged);
    orders.outcome = std::move(outcome);
  }
  return orders;
}

}  // namespace vramtrace::forecast
