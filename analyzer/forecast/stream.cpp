#include "analyzer/forecast/stream.h"

#include <string_view>

namespace vramtrace::forecast {

Bytes SizeLaw::At(uint64_t batch) const {
  // Sizes and batches are far below 2^63 in every trace that a card can hold; a hostile one wraps in 128 bits.
  const auto product = static_cast<__int128>(slope) * static_cast<__int128>(batch);
  const __int128 bytes = fixed + product / static_cast<__int128>(divisor == 0 ? 1 : divisor);
  if (bytes <= 0) return 0;
  constexpr __int128 kMost = __int128{1} << 62;
  return static_cast<Bytes>(bytes < kMost ? bytes : kMost);
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
