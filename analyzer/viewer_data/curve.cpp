#include "analyzer/viewer_data/curve.h"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrace::viewer_data {

void Curve::Merge(const Bucket& next, Bucket* bucket) {
  if (next.highest.allocated > bucket->highest.allocated) bucket->highest = next.highest;
  bucket->lowest = std::min(bucket->lowest, next.lowest);
  bucket->highest_reserved = std::max(bucket->highest_reserved, next.highest_reserved);
  bucket->highest_used = std::max(bucket->highest_used, next.highest_used);
}

void Curve::Halve() {
  const size_t half = buckets_.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    Bucket merged = buckets_[2 * i];
    Merge(buckets_[2 * i + 1], &merged);
    buckets_[i] = merged;
  }
  buckets_.resize(half);
  events_per_bucket_ *= 2;
  events_in_last_ = events_per_bucket_;
}

void Curve::Add(const CurvePoint& point) {
  const Bucket bucket{point, point, {}, point.allocated, point.reserved, point.used};
  if (!buckets_.empty() && events_in_last_ < events_per_bucket_) {
    Merge(bucket, &buckets_.back());
    ++events_in_last_;
    return;
  }
  if (buckets_.size() == 2 * kBuckets) Halve();
  buckets_.push_back(bucket);
  events_in_last_ = 1;
}

size_t Curve::FirstSeeing(Tick tick) {
  const auto found =
      std::lower_bound(buckets_.begin(), buckets_.end(), tick,
                       [](const Bucket& bucket, Tick wanted) { return bucket.highest.tick < wanted; });
  return static_cast<size_t>(found - buckets_.begin());
}

// Sums are modulo 2^64: adding and taking away cancel even where a hostile trace adds up to more.
void Curve::AddLife(Tick allocated, Tick freed, size_t memory_class, uint64_t bytes, uint64_t block_bytes) {
  const size_t begin = FirstSeeing(allocated);
  const size_t end = freed == kNever ? buckets_.size() : FirstSeeing(freed);
  if (begin == end) return;
  const uint64_t rounding = block_bytes - bytes;
  buckets_[begin].bands[memory_class] += bytes;
  buckets_[begin].bands[kBands - 1] += rounding;
  if (end == buckets_.size()) return;
  buckets_[end].bands[memory_class] -= bytes;
  buckets_[end].bands[kBands - 1] -= rounding;
}

void Curve::SumLives() {
  for (size_t i = 1; i < buckets_.size(); ++i) {
    for (size_t band = 0; band < kBands; ++band) buckets_[i].bands[band] += buckets_[i - 1].bands[band];
  }
}

std::vector<Tick> Curve::LocalPeaks(size_t parts) const {
  std::vector<Tick> peaks;
  for (size_t part = 0; part < parts; ++part) {
    const auto begin = buckets_.begin() + static_cast<ptrdiff_t>(buckets_.size() * part / parts);
    const auto end = buckets_.begin() + static_cast<ptrdiff_t>(buckets_.size() * (part + 1) / parts);
    if (begin == end) continue;
    const auto highest = std::max_element(begin, end, [](const Bucket& a, const Bucket& b) {
      return a.highest.allocated < b.highest.allocated;
    });
    peaks.push_back(highest->highest.tick);
  }
  return peaks;
}

void Curve::Write(const std::string& prefix, Columns* columns) const {
  const auto write = [&]<typename Value>(std::string_view name, Value (*value)(const Bucket&)) {
    std::vector<Value> values;
    values.reserve(buckets_.size());
    for (const Bucket& bucket : buckets_) values.push_back(value(bucket));
    columns->Add(prefix + std::string(name), values);
  };
  write.operator()<uint32_t>("tick", [](const Bucket& b) { return b.first.tick; });
  write.operator()<double>("time", [](const Bucket& b) { return static_cast<double>(b.first.time_ns); });
  write.operator()<uint32_t>("step", [](const Bucket& b) { return static_cast<uint32_t>(b.first.step); });
  write.operator()<uint8_t>("phase", [](const Bucket& b) { return static_cast<uint8_t>(b.first.phase); });
  write.operator()<uint32_t>("highest_tick", [](const Bucket& b) { return b.highest.tick; });
  write.operator()<double>("highest",
                           [](const Bucket& b) { return static_cast<double>(b.highest.allocated); });
  write.operator()<double>("lowest", [](const Bucket& b) { return static_cast<double>(b.lowest); });
  write.operator()<double>("reserved",
                           [](const Bucket& b) { return static_cast<double>(b.highest_reserved); });
  write.operator()<double>("used", [](const Bucket& b) { return b.highest_used; });
  for (size_t band = 0; band < kBands; ++band) {
    std::vector<double> values;
    values.reserve(buckets_.size());
    for (const Bucket& bucket : buckets_) values.push_back(static_cast<double>(bucket.bands[band]));
    const bool any = std::any_of(values.begin(), values.end(), [](double value) { return value != 0; });
    if (any) columns->Add(fmt::format("{}band{}", prefix, band), values);
  }
}

}  // namespace vramtrace::viewer_data
