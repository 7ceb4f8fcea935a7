#pragma once
// A card to forecast for.

#include <string>
#include <string_view>

#include "analyzer/forecast/stream.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::forecast {

struct Card {
  std::string id;    // of the catalogue; empty for a capacity that the user named
  std::string name;  // for people
  Bytes total = 0;   // as cudaMemGetInfo gives it
  // What a process holds there besides the caching allocator's memory: the card's context, and the other
  // libraries' memory as it was recorded.
  Bytes elsewhere = 0;
  std::string elsewhere_basis;  // recorded, measured, assumed
};

// The card that the run was recorded on.
[[nodiscard]] Card RecordedCard(const RunFacts& facts);
// A card of the catalogue. `total` is 0 where the catalogue knows neither of its totals.
[[nodiscard]] Card CatalogueCard(const catalogue::Gpu& gpu, const RunFacts& facts);
// So many bytes, everything else as recorded.
[[nodiscard]] Card CapacityCard(Bytes total, const RunFacts& facts);

}  // namespace vramtrace::forecast
