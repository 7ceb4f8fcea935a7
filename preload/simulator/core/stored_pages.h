#pragma once
// Which 4 KiB pages of device memory hold stored bytes: one bit each, kept only where a bit is set. Every
// other page reads as zero, so clearing and copying cost what is stored, not what is allocated.

#include <array>
#include <cstdint>
#include <map>

namespace vramtrace::simulator {

class StoredPages {
 public:
  static constexpr uint64_t kPage = 4096;

  void Mark(uint64_t address, uint64_t bytes);
  void Unmark(uint64_t address, uint64_t bytes);  // pages that lie wholly inside
  [[nodiscard]] uint64_t stored_bytes() const { return pages_ * kPage; }

  // Calls visit(begin, end) for each run of stored bytes inside the range, in order.
  template <class Visit>
  void ForEach(uint64_t address, uint64_t bytes, Visit visit) const {
    if (bytes == 0) return;
    uint64_t end = address + bytes;
    uint64_t run_begin = 0;
    uint64_t run_end = 0;
    for (auto entry = pieces_.lower_bound(address / kPiece); entry != pieces_.end(); ++entry) {
      uint64_t base = entry->first * kPiece;
      if (base >= end) break;
      for (uint64_t index = 0; index < kPagesAPiece; ++index) {
        uint64_t word = entry->second[index / 64];
        if (word == 0) {
          index |= 63;
          continue;
        }
        if ((word >> (index % 64) & 1) == 0) continue;
        uint64_t begin = base + index * kPage;
        if (begin + kPage <= address || begin >= end) continue;
        if (begin != run_end) {
          if (run_end != 0) visit(run_begin < address ? address : run_begin, run_end);
          run_begin = begin;
        }
        run_end = begin + kPage;
      }
    }
    if (run_end != 0) visit(run_begin < address ? address : run_begin, run_end < end ? run_end : end);
  }

 private:
  static constexpr uint64_t kPiece = 2u << 20;
  static constexpr uint64_t kPagesAPiece = kPiece / kPage;
  using Bits = std::array<uint64_t, kPagesAPiece / 64>;

  std::map<uint64_t, Bits> pieces_;
  uint64_t pages_ = 0;
};

}  // namespace vramtrace::simulator
