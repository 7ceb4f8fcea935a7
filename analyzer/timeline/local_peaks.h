#pragma once
// The local peaks of a device's allocated bytes: where a climb ended. A remedy that lowers the highest
// exposes the next, so those near it are kept, one a place of the program.

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/timeline/replay.h"

namespace vramtrace::timeline {

struct LocalPeak {
  uint64_t bytes = 0;
  Instant instant;
  uint64_t times = 0;  // how often the same place had a peak this near to the highest
};

class LocalPeaks {
 public:
  // A dip of a fiftieth of the bytes separates two peaks; peaks below nine tenths of the highest are dropped.
  static constexpr uint64_t kDip = 50;
  static constexpr uint64_t kNear = 10;
  static constexpr size_t kMost = 64;

  // After every block event. `module`: of the event's frames; 0: none.
  void Add(uint64_t allocated, const Instant& instant, uint64_t module) {
    if (climbing_) {
      if (allocated > top_.bytes) {
        top_.bytes = allocated;
        top_.instant = instant;
        module_ = module;
      } else if (allocated < top_.bytes - top_.bytes / kDip) {
        Keep();
        climbing_ = false;
        valley_ = allocated;
      }
    } else if (allocated < valley_) {
      valley_ = allocated;
    } else if (allocated > valley_ + valley_ / kDip) {
      climbing_ = true;
      top_ = {allocated, instant, 1};
      module_ = module;
    }
  }

  // The highest first, the highest of all included. After the last event.
  [[nodiscard]] std::vector<LocalPeak> Take();

 private:
  // Peaks of one phase under one module are one place, whatever the step.
  using Place = std::pair<model::Phase, uint64_t>;

  void Keep();
  [[nodiscard]] bool Near(uint64_t bytes) const { return bytes >= highest_ - highest_ / kNear; }

  bool climbing_ = true;
  uint64_t valley_ = 0;
  uint64_t highest_ = 0;
  uint64_t module_ = 0;
  LocalPeak top_{0, {}, 1};
  std::map<Place, LocalPeak> places_;
};

}  // namespace vramtrace::timeline
