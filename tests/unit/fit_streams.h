#pragma once
// Streams of a small training, made by hand: weights stay, activations follow the batch.

#include <vector>

#include "analyzer/allocator/versions.h"
#include "analyzer/forecast/replay.h"
#include "analyzer/forecast/stream.h"

namespace vramtrace::fit::testing {

inline constexpr forecast::Bytes kTestMiB = forecast::Bytes{1} << 20;

struct Training {
  forecast::Bytes weights = 200 * kTestMiB;
  forecast::Bytes activation = 4 * kTestMiB;  // of one layer and one sample
  uint32_t layers = 8;
  uint32_t steps = 2;
};

// With the laws that two recordings would give.
inline forecast::Stream MakeStream(const Training& training, uint64_t batch) {
  using namespace forecast;
  Stream stream;
  stream.batch = batch;
  stream.facts.batch = batch;
  stream.facts.simulated = true;
  stream.facts.steps = training.steps;
  Site site;
  site.key = 1;
  site.phase = Phase::kForward;
  site.text = "train.py:1 (forward)";
  stream.sites.push_back(site);
  const auto add = [&](const SizeLaw& law, uint32_t step) {
    Request request;
    request.law = law;
    request.bytes = law.At(batch);
    request.site = SiteId{0};
    request.step = step;
    const RequestId id{static_cast<uint32_t>(stream.requests.size())};
    stream.requests.push_back(request);
    stream.events.push_back({EventKind::kAllocate, Phase::kForward, id});
    return id;
  };
  add(SizeLaw::Fixed(training.weights), 0);
  for (uint32_t step = 0; step < training.steps; ++step) {
    std::vector<RequestId> saved;
    for (uint32_t layer = 0; layer < training.layers; ++layer) {
      SizeLaw law;
      law.slope = static_cast<int64_t>(training.activation);
      law.basis = LawBasis::kMeasured;
      saved.push_back(add(law, step));
    }
    while (!saved.empty()) {
      stream.events.push_back({EventKind::kFree, Phase::kBackward, saved.back()});
      saved.pop_back();
    }
    stream.events.push_back({});
  }
  return stream;
}

// Of PyTorch 2.15 with its defaults, on a card without a limit.
inline forecast::ReplayOptions Defaults(forecast::Bytes elsewhere = 0) {
  forecast::ReplayOptions options;
  options.rules = allocator::FindVersion({2, 15});
  options.elsewhere = elsewhere;
  return options;
}

}  // namespace vramtrace::fit::testing
