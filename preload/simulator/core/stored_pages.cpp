#include "preload/simulator/core/stored_pages.h"

#include <algorithm>

namespace vramtrace::simulator {

void StoredPages::Mark(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return;
  uint64_t last = (address + bytes - 1) / kPage;
  for (uint64_t page = address / kPage; page <= last; ++page) {
    uint64_t& word = pieces_[page / kPagesAPiece][page % kPagesAPiece / 64];
    uint64_t bit = uint64_t{1} << (page % 64);
    if ((word & bit) == 0) ++pages_;
    word |= bit;
  }
}

void StoredPages::Unmark(uint64_t address, uint64_t bytes) {
  uint64_t first = (address + kPage - 1) / kPage;
  uint64_t end = (address + bytes) / kPage;
  if (first >= end) return;
  for (auto entry = pieces_.lower_bound(first / kPagesAPiece); entry != pieces_.end();) {
    uint64_t base = entry->first * kPagesAPiece;
    if (base >= end) break;
    for (uint64_t page = std::max(first, base); page < std::min(end, base + kPagesAPiece); ++page) {
      uint64_t& word = entry->second[page % kPagesAPiece / 64];
      uint64_t bit = uint64_t{1} << (page % 64);
      if ((word & bit) != 0) --pages_;
      word &= ~bit;
    }
    bool empty = std::all_of(entry->second.begin(), entry->second.end(), [](uint64_t w) { return w == 0; });
    entry = empty ? pieces_.erase(entry) : std::next(entry);
  }
}

}  // namespace vramtrace::simulator
