#pragma once
// Which parts of device memory hold stored bytes: a bit for each sector of 512 B, the unit of PyTorch's
// blocks, kept only where a bit is set. Every other sector reads as zero, so clearing and copying cost what
// is stored, not what is allocated.

#include <array>
#include <cstdint>
#include <map>

namespace vramtrace::simulator {

class StoredBytes {
 public:
  static constexpr uint64_t kSector = 512;

  void Mark(uint64_t address, uint64_t bytes);
  void Unmark(uint64_t address, uint64_t bytes);  // sectors that lie wholly inside
  [[nodiscard]] uint64_t stored_bytes() const { return sectors_ * kSector; }

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
      for (uint64_t index = 0; index < kSectorsAPiece; ++index) {
        uint64_t word = entry->second[index / 64];
        if (word == 0) {
          index |= 63;
          continue;
        }
        if ((word >> (index % 64) & 1) == 0) continue;
        uint64_t begin = base + index * kSector;
        if (begin + kSector <= address || begin >= end) continue;
        if (begin != run_end) {
          if (run_end != 0) visit(run_begin < address ? address : run_begin, run_end);
          run_begin = begin;
        }
        run_end = begin + kSector;
      }
    }
    if (run_end != 0) visit(run_begin < address ? address : run_begin, run_end < end ? run_end : end);
  }

 private:
  static constexpr uint64_t kPiece = 2u << 20;
  static constexpr uint64_t kSectorsAPiece = kPiece / kSector;
  using Bits = std::array<uint64_t, kSectorsAPiece / 64>;

  std::map<uint64_t, Bits> pieces_;
  uint64_t sectors_ = 0;
};

}  // namespace vramtrace::simulator
