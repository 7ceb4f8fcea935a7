#pragma once

#include <array>
#include <cstddef>

#include "analyzer/allocator/units.h"

namespace vramtrace::allocator {

// Constants of the caching allocator, the same in every release from 2.0 (facts: c10/core/AllocatorConfig.h).
inline constexpr Bytes kMinBlock = 512;              // sizes are rounded up to multiples of this
inline constexpr Bytes kLargestSmall = 1 * kMiB;     // rounded sizes up to this come from the small pool
inline constexpr Bytes kSmallSegment = 2 * kMiB;     // what the small pool asks the driver for
inline constexpr Bytes kLargeSegment = 20 * kMiB;    // what the large pool asks for below kOwnSegment
inline constexpr Bytes kOwnSegment = 10 * kMiB;      // from here on a request gets a segment of its own size
inline constexpr Bytes kSegmentRounding = 2 * kMiB;  // in multiples of this
inline constexpr Bytes kTooLarge = Bytes{1} << 60;   // requests from here on are refused before any search

// roundup_power2_divisions: entry i holds for sizes in [1 MiB << i, 2 MiB << i); the first for all below,
// the last for all above.
using PowerOfTwoDivisions = std::array<Bytes, 16>;

// The block size for a request of `requested` bytes.
[[nodiscard]] Bytes RoundSize(Bytes requested, const PowerOfTwoDivisions& divisions,
                              bool one_division_is_unrounded);

// What is asked of the driver for a block of `rounded` bytes. Also the figure of the out-of-memory message.
[[nodiscard]] Bytes SegmentBytes(Bytes rounded, Bytes large_segment);

[[nodiscard]] constexpr Bytes RoundUp(Bytes value, Bytes unit) { return (value + unit - 1) / unit * unit; }
[[nodiscard]] constexpr Bytes RoundDown(Bytes value, Bytes unit) { return value / unit * unit; }

}  // namespace vramtrace::allocator
