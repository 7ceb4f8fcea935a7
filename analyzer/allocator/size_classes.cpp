#include "analyzer/allocator/size_classes.h"

#include <algorithm>
#include <bit>

namespace vramtrace::allocator {
namespace {

// Rounds up to the next of `divisions` equal parts of the power-of-two interval that holds `size`.
Bytes RoundToDivision(Bytes size, Bytes divisions) {
  if (divisions <= 1 || std::has_single_bit(size)) return size;
  const Bytes floor = std::bit_floor(size);
  const Bytes step = floor >> (std::bit_width(divisions) - 1);
  return step == 0 ? floor << 1 : RoundUp(size, step);
}

}  // namespace

Bytes RoundSize(Bytes requested, const PowerOfTwoDivisions& divisions, bool one_division_is_unrounded) {
  if (requested < kMinBlock) return kMinBlock;
  const int interval = static_cast<int>(std::bit_width(requested)) - 1 - 20;
  const Bytes parts = divisions[static_cast<std::size_t>(std::clamp(interval, 0, 15))];
  const bool divide = parts > 1 || (parts == 1 && one_division_is_unrounded);
  if (divide && requested > kMinBlock * parts) return RoundToDivision(requested, parts);
  return RoundUp(requested, kMinBlock);
}

Bytes SegmentBytes(Bytes rounded, Bytes large_segment) {
  if (rounded <= kLargestSmall) return kSmallSegment;
  if (rounded < kOwnSegment) return large_segment;
  return RoundUp(rounded, kSegmentRounding);
}

}  // namespace vramtrace::allocator
