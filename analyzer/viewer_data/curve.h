#pragma once
// The memory of one device over its events, in a bounded number of buckets that keep every peak.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/attribution/lives.h"
#include "analyzer/attribution/verdict.h"
#include "analyzer/model/phase.h"
#include "analyzer/viewer_data/columns.h"

namespace vramtrace::viewer_data {

using attribution::kNever;
using attribution::Tick;

// Tensor bytes by class; the last place is what the allocator's rounding adds.
inline constexpr size_t kBands = attribution::kMemoryClassCount + 1;
using Bands = std::array<uint64_t, kBands>;

// One event's state.
struct CurvePoint {
  Tick tick = 0;
  uint64_t time_ns = 0;  // since the trace's first event
  uint64_t allocated = 0;
  uint64_t reserved = 0;
  double used = -1;  // as the device reports it; -1: it never said
  uint64_t step = 0;
  model::Phase phase = model::Phase::kLoad;
};

class Curve {
 public:
  // At most 2 * kBuckets buckets: while there are fewer events than that, each is its own bucket.
  static constexpr size_t kBuckets = 16384;

  struct Bucket {
    CurvePoint first;
    CurvePoint highest;  // of allocated
    Bands bands{};       // at `highest`
    uint64_t lowest = 0;
    uint64_t highest_reserved = 0;
    double highest_used = -1;
  };

  void Add(const CurvePoint& point);

  // After the last point: the classes. A block's class is known only at its end, and the buckets' only when
  // all points are there; so every life adds to the bucket where it begins to be seen and takes away where it
  // no longer is, and SumLives adds them up.
  void AddLife(Tick allocated, Tick freed, size_t memory_class, uint64_t bytes, uint64_t block_bytes);
  void SumLives();

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  // Columns named `prefix` + "tick", "time", "max", ...
  void Write(const std::string& prefix, Columns* columns) const;

  // The tick of the greatest allocated bytes in each of at most `parts` equal stretches, ascending.
  [[nodiscard]] std::vector<Tick> LocalPeaks(size_t parts) const;

 private:
  static void Merge(const Bucket& next, Bucket* bucket);
  void Halve();
  // The first bucket whose highest event is at or after the tick.
  [[nodiscard]] size_t FirstSeeing(Tick tick);

  std::vector<Bucket> buckets_;
  uint64_t events_per_bucket_ = 1;
  uint64_t events_in_last_ = 0;
};

}  // namespace vramtrace::viewer_data
