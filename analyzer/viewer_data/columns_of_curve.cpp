#include "analyzer/viewer_data/columns_of_curve.h"

#include <algorithm>

namespace vramtrace::viewer_data {

std::vector<size_t> HighestByColumn(const Curve& curve, size_t columns) {
  const auto& buckets = curve.buckets();
  if (buckets.empty()) return {};
  const double from = buckets.front().first.tick;
  const double ticks = std::max(1.0, buckets.back().first.tick + 1 - from);
  std::vector<size_t> chosen(columns);
  size_t next = 0;
  for (size_t column = 0; column < columns; ++column) {
    const double end = from + ticks * static_cast<double>(column + 1) / static_cast<double>(columns);
    size_t best = next == 0 ? 0 : next - 1;
    bool first = true;
    for (; next < buckets.size() && buckets[next].first.tick < end; ++next) {
      if (first || buckets[next].highest.allocated > buckets[best].highest.allocated) best = next;
      first = false;
    }
    chosen[column] = best;
  }
  return chosen;
}

size_t ColumnOf(const Curve& curve, size_t columns, Tick tick) {
  const auto& buckets = curve.buckets();
  if (buckets.empty()) return 0;
  const double from = buckets.front().first.tick;
  const double ticks = std::max(1.0, buckets.back().first.tick + 1 - from);
  const double column = static_cast<double>(columns) * (std::max<double>(tick, from) - from) / ticks;
  return std::min(columns - 1, static_cast<size_t>(column));
}

uint64_t MostBytes(const Curve& curve) {
  uint64_t most = 1;
  for (const Curve::Bucket& bucket : curve.buckets()) {
    most = std::max({most, bucket.highest.allocated, bucket.highest_reserved,
                     bucket.highest_used > 0 ? static_cast<uint64_t>(bucket.highest_used) : 0});
  }
  return most;
}

}  // namespace vramtrace::viewer_data
