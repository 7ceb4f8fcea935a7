#pragma once
// Where batches vary in length, the order in which they come moves reserved bytes far more than allocated
// ones: a long batch after short ones finds only holes that are too small (a factor 1.27 on one of the
// published cases). A forecast therefore replays several orders of the recorded steps.

#include <cstdint>
#include <vector>

#include "analyzer/forecast/replay.h"

namespace vramtrace::forecast {

struct Orders {
  uint32_t tried = 0;  // 0: every step asks for the same, or no two steps can be exchanged
  Bytes lowest = 0;    // reserved
  Bytes highest = 0;
  Stream worst;     // the order with the highest reserved bytes
  Outcome outcome;  // of it
};

// Steps are exchanged where they make the same requests in the same order and differ in sizes alone. The
// orders tried: by rising size, by falling size, the largest last among small ones, and pseudorandom ones,
// the same each time.
[[nodiscard]] Orders TryOrders(const Stream& stream, const ReplayOptions& options, const Outcome& recorded);

}  // namespace vramtrace::forecast
