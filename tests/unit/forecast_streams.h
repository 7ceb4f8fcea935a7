#pragma once
// Streams made by hand, for tests of what edits and replays them.

#include <string>

#include "analyzer/forecast/edit.h"
#include "analyzer/forecast/replay.h"
#include "analyzer/forecast/stream.h"

namespace vramtrace::testing {

class StreamMaker {
 public:
  explicit StreamMaker(uint64_t batch = 4) {
    stream_.batch = batch;
    stream_.facts.batch = batch;
    stream_.facts.pytorch = {2, 15};
    stream_.facts.steps = 2;
    stream_.facts.trace = "made.vtrace";
  }

  forecast::SiteId Site(uint64_t key, forecast::Phase phase, const std::string& module = {}) {
    for (uint32_t i = 0; i < stream_.sites.size(); ++i) {
      if (stream_.sites[i].key == key) return forecast::SiteId{i};
    }
    stream_.sites.push_back(
        {key, phase, !module.empty(), module, "Module", {}, "made.py:" + std::to_string(key)});
    return forecast::SiteId{static_cast<uint32_t>(stream_.sites.size() - 1)};
  }

  forecast::RequestId Allocate(forecast::SiteId site, forecast::Bytes bytes,
                               forecast::MemoryClass memory_class = forecast::MemoryClass::kActivation) {
    forecast::Request request;
    request.bytes = bytes;
    request.law = forecast::SizeLaw::Fixed(bytes);
    request.site = site;
    request.step = step_;
    request.memory_class = memory_class;
    for (const forecast::Request& other : stream_.requests) {
      if (other.site == site && other.step == step_) ++request.ordinal;
    }
    const forecast::RequestId id{static_cast<uint32_t>(stream_.requests.size())};
    stream_.requests.push_back(request);
    stream_.events.push_back({forecast::EventKind::kAllocate, stream_[site].phase, id});
    return id;
  }
  void Free(forecast::RequestId id) {
    stream_.events.push_back({forecast::EventKind::kFree, stream_.SiteOf(stream_[id]).phase, id});
  }
  void EndStep() {
    stream_.events.push_back({});
    ++step_;
  }
  forecast::Stream& stream() { return stream_; }

 private:
  forecast::Stream stream_;
  uint32_t step_ = 0;
};

// On a card without a limit.
inline forecast::Outcome ReplayOf(const forecast::Stream& stream, forecast::Bytes total = 0) {
  forecast::ReplayOptions options = forecast::OptionsOf(stream.facts).value();
  options.total = total;
  return forecast::Replay(stream, options);
}

}  // namespace vramtrace::testing
