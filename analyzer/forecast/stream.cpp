#include "analyzer/forecast/stream.h"

#include <algorithm>
#include <string_view>

#include "analyzer/forecast/reductions.h"

namespace vramtrace::forecast {

Bytes SizeLaw::At(uint64_t batch) const {
  // In 128 bits: a hostile trace may hold any size, and only what a device can hold must come out exact.
  constexpr __int128 kMost = __int128{1} << 62;
  const auto b = static_cast<__int128>(batch < (uint64_t{1} << 31) ? batch : uint64_t{1} << 31);
  const __int128 sum = fixed + slope * b + square * b * b;
  const auto by = static_cast<__int128>(divisor == 0 ? 1 : divisor);
  if (sum <= 0) return 0;
  __int128 bytes = (sum + by - 1) / by;
  if (most != 0 && bytes > static_cast<__int128>(most)) {
    bytes = std::max(static_cast<__int128>(most), bytes / kReductionSlack);
  }
  return static_cast<Bytes>(bytes < kMost ? bytes : kMost);
}

SizeLaw SizeLaw::Times(uint64_t numerator, uint64_t denominator) const {
  const auto times = static_cast<int64_t>(numerator);
  const Bytes limit = denominator == 0 ? 0 : (most * numerator + denominator - 1) / denominator;
  return {fixed * times, slope * times, square * times, divisor * denominator, basis, limit};
}

SizeLaw SizeLaw::Fixed(Bytes bytes, LawBasis basis) {
  return {static_cast<int64_t>(bytes), 0, 0, 1, basis, 0};
}

bool IsBelow(std::string_view path, std::string_view prefix) {
  if (prefix.empty()) return true;
  if (!path.starts_with(prefix)) return false;
  return path.size() == prefix.size() || path[prefix.size()] == '.';
}

Stream AtBatch(Stream stream, uint64_t batch) {
  if (batch == stream.batch) return stream;
  for (Request& request : stream.requests) request.bytes = request.law.At(batch);
  stream.batch = batch;
  return stream;
}

}  // namespace vramtrace::forecast
