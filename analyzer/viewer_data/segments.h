#pragma once
// What was taken from the driver and when it went back: segments of the caching allocator, mapped pages, and
// allocations of others.

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/timeline/replay.h"
#include "analyzer/viewer_data/columns.h"
#include "analyzer/viewer_data/curve.h"

namespace vramtrace::viewer_data {

class SegmentLives {
 public:
  // `reserved_before`: of the device, before the event was applied.
  void Add(const trace::Event& event, const timeline::Applied& applied, uint64_t reserved_before, Tick tick);
  // After the last event.
  void Finish(std::map<uint32_t, timeline::DeviceState>& devices);
  // Columns "segment.*"; texts go to `strings`.
  void Write(const model::Tables& tables, Strings* strings, Columns* columns) const;

 private:
  struct Segment {
    uint32_t device = 0;
    uint64_t address = 0;
    uint64_t bytes = 0;
    Tick allocated = 0;
    Tick freed = kNever;
    model::StringId caller{};
    bool caching = false;
  };
  using Place = std::pair<uint32_t, uint64_t>;  // device, address

  void Open(const Segment& segment);
  void Close(std::map<Place, size_t>::iterator entry, bool caching, Tick tick);

  std::vector<Segment> segments_;
  std::map<Place, size_t> open_;
};

}  // namespace vramtrace::viewer_data
