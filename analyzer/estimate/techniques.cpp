#include "analyzer/estimate/techniques.h"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrace::estimate {
namespace {

bool Trains(const Request& request) { return request.Trains(); }

constexpr Technique kTechniques[] = {
#define VRAMTRACE_TECHNIQUE(name, option, applies, apply, source) \
  {name, option, [](const Request& r) { return applies; }, [](Request& r) { apply; }, source},
#include "analyzer/estimate/techniques.def"
#undef VRAMTRACE_TECHNIQUE
};

std::string Arrangement(const Request& request) {
  std::string text;
  const auto add = [&](const std::string& part) { text += text.empty() ? part : ", " + part; };
  if (request.data_parallel > 1) {
    constexpr const char* kNames[] = {"DDP", "ZeRO-1", "ZeRO-2", "FSDP"};
    add(fmt::format("{} over {}", kNames[static_cast<size_t>(request.shard)], request.data_parallel));
  }
  if (request.tensor_parallel > 1) add(fmt::format("tensor parallel {}", request.tensor_parallel));
  if (request.pipeline > 1) add(fmt::format("pipeline of {}", request.pipeline));
  return text;
}

}  // namespace

std::span<const Technique> Techniques() { return kTechniques; }

std::vector<Change> Changes(const Model& model, const Estimate& estimate) {
  std::vector<Change> changes;
  for (const Technique& technique : kTechniques) {
    if (!technique.applies(estimate.request)) continue;
    Request request = estimate.request;
    technique.apply(request);
    trace::Result<Estimate> after = MakeEstimate(model, request);
    if (!after.ok() || after.value().used.expected >= estimate.used.expected) continue;
    changes.push_back({&technique, std::move(after.value())});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& left, const Change& right) {
    return left.after.used.expected < right.after.used.expected;
  });
  return changes;
}

std::vector<gpus::Need> Needs(const Model& model, const Estimate& estimate) {
  std::vector<gpus::Need> needs;
  if (estimate.request.Cards() > 1) {
    const auto cards = static_cast<int>(estimate.request.Cards());
    needs.push_back({cards, Arrangement(estimate.request), estimate.used, false});
    return needs;
  }
  for (const uint64_t cards : {1, 2, 4, 8}) {
    Request request = estimate.request;
    (request.Trains() ? request.data_parallel : request.tensor_parallel) = cards;
    const trace::Result<Estimate> shared = MakeEstimate(model, request);
    if (!shared.ok()) continue;
    needs.push_back({static_cast<int>(cards), Arrangement(request), shared.value().used, false});
  }
  return needs;
}

}  // namespace vramtrace::estimate
