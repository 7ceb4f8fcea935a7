#pragma once
// A curve at a picture's width: one bucket a column, the one with most allocated bytes, so that a peak shows.

#include <vector>

#include "analyzer/viewer_data/curve.h"

namespace vramtrace::viewer_data {

// Indexes of buckets by event, `columns` of them; empty for an empty curve.
[[nodiscard]] std::vector<size_t> HighestByColumn(const Curve& curve, size_t columns);

// The column in which an event lies.
[[nodiscard]] size_t ColumnOf(const Curve& curve, size_t columns, Tick tick);

// The greatest of what a picture shows: allocated, reserved, used.
[[nodiscard]] uint64_t MostBytes(const Curve& curve);

}  // namespace vramtrace::viewer_data
