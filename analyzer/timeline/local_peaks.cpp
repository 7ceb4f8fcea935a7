#include "analyzer/timeline/local_peaks.h"

#include <algorithm>

namespace vramtrace::timeline {

void LocalPeaks::Keep() {
  if (!Near(top_.bytes)) return;
  highest_ = std::max(highest_, top_.bytes);
  LocalPeak& place = places_[{top_.instant.phase, module_}];
  const uint64_t times = Near(place.bytes) ? place.times + 1 : 1;
  if (top_.bytes > place.bytes) place = top_;
  place.times = times;
  if (places_.size() <= kMost) return;
  std::erase_if(places_, [this](const auto& entry) { return !Near(entry.second.bytes); });
  while (places_.size() > kMost) {
    places_.erase(std::min_element(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
      return a.second.bytes < b.second.bytes;
    }));
  }
}

std::vector<LocalPeak> LocalPeaks::Take() {
  if (climbing_ && top_.bytes > 0) Keep();
  std::vector<LocalPeak> peaks;
  for (const auto& [place, peak] : places_) {
    if (Near(peak.bytes)) peaks.push_back(peak);
  }
  std::sort(peaks.begin(), peaks.end(),
            [](const LocalPeak& a, const LocalPeak& b) { return a.bytes > b.bytes; });
  return peaks;
}

}  // namespace vramtrace::timeline
