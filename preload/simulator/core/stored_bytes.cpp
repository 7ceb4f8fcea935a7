#include "preload/simulator/core/stored_bytes.h"

#include <algorithm>

namespace vramtrace::simulator {

void StoredBytes::Mark(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return;
  uint64_t last = (address + bytes - 1) / kSector;
  for (uint64_t sector = address / kSector; sector <= last; ++sector) {
    uint64_t& word = pieces_[sector / kSectorsAPiece][sector % kSectorsAPiece / 64];
    uint64_t bit = uint64_t{1} << (sector % 64);
    if ((word & bit) == 0) ++sectors_;
    word |= bit;
  }
}

void StoredBytes::Unmark(uint64_t address, uint64_t bytes) {
  uint64_t first = (address + kSector - 1) / kSector;
  uint64_t end = (address + bytes) / kSector;
  if (first >= end) return;
  for (auto entry = pieces_.lower_bound(first / kSectorsAPiece); entry != pieces_.end();) {
    uint64_t base = entry->first * kSectorsAPiece;
    if (base >= end) break;
    for (uint64_t sector = std::max(first, base); sector < std::min(end, base + kSectorsAPiece); ++sector) {
      uint64_t& word = entry->second[sector % kSectorsAPiece / 64];
      uint64_t bit = uint64_t{1} << (sector % 64);
      if ((word & bit) != 0) --sectors_;
      word &= ~bit;
    }
    bool empty = std::all_of(entry->second.begin(), entry->second.end(), [](uint64_t w) { return w == 0; });
    entry = empty ? pieces_.erase(entry) : std::next(entry);
  }
}

}  // namespace vramtrace::simulator
