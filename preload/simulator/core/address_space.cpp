#include "preload/simulator/core/address_space.h"

#include <sys/mman.h>

#include "preload/simulator/core/log.h"

namespace vramtrace::simulator {
namespace {

constexpr uint64_t kPiece = 2u << 20;
constexpr uint64_t kWanted = 32ull << 40;  // expandable segments reserve 9/8 of the card for each stream
constexpr uint64_t kLeast = 64ull << 30;
// Above what loaders and sanitizers use, below where the kernel places libraries.
constexpr uint64_t kHint = 0x200000000000;

}  // namespace

AddressSpace::AddressSpace() {
  void* base = MAP_FAILED;
  uint64_t bytes = kWanted;
  for (; bytes >= kLeast; bytes /= 2) {
    // Without access it counts neither as committed memory (overcommit 2) nor as resident.
    base = mmap(reinterpret_cast<void*>(kHint), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
    if (base != MAP_FAILED) break;
  }
  if (base == MAP_FAILED) {
    Warn("no address space for device memory: raise the limit on virtual memory (ulimit -v unlimited)");
    return;
  }
  madvise(base, bytes, MADV_NOHUGEPAGE);  // a stored word must cost 4 KiB, not 2 MiB
  madvise(base, bytes, MADV_DONTDUMP);
  begin_ = (reinterpret_cast<uint64_t>(base) + kPiece - 1) & ~(kPiece - 1);
  bytes_ = (reinterpret_cast<uint64_t>(base) + bytes - begin_) & ~(kPiece - 1);
  holes_[begin_] = bytes_;
  committed_.resize(bytes_ / kPiece);
}

uint64_t AddressSpace::TakeFrom(std::map<uint64_t, uint64_t>::iterator hole, uint64_t address,
                                uint64_t bytes) {
  uint64_t begin = hole->first;
  uint64_t end = begin + hole->second;
  holes_.erase(hole);
  if (address > begin) holes_[begin] = address - begin;
  if (address + bytes < end) holes_[address + bytes] = end - address - bytes;
  return address;
}

uint64_t AddressSpace::Take(uint64_t bytes, uint64_t alignment, uint64_t hint) {
  if (hint != 0 && hint % alignment == 0) {
    auto hole = holes_.upper_bound(hint);
    if (hole != holes_.begin()) {
      --hole;
      if (hint + bytes <= hole->first + hole->second) return TakeFrom(hole, hint, bytes);
    }
  }
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    uint64_t address = (hole->first + alignment - 1) & ~(alignment - 1);
    uint64_t end = hole->first + hole->second;
    if (address < end && bytes <= end - address) return TakeFrom(hole, address, bytes);
  }
  return 0;
}

void AddressSpace::Give(uint64_t address, uint64_t bytes) {
  auto hole = holes_.emplace(address, bytes).first;
  auto next = std::next(hole);
  if (next != holes_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole == holes_.begin()) return;
  auto previous = std::prev(hole);
  if (previous->first + previous->second == hole->first) {
    previous->second += hole->second;
    holes_.erase(hole);
  }
}

bool AddressSpace::Commit(uint64_t address, uint64_t bytes) {
  uint64_t last = (address + bytes - 1 - begin_) / kPiece;
  for (uint64_t piece = (address - begin_) / kPiece; piece <= last; ++piece) {
    if (committed_[piece]) continue;
    void* start = reinterpret_cast<void*>(begin_ + piece * kPiece);
    if (mprotect(start, kPiece, PROT_READ | PROT_WRITE) != 0) return false;
    committed_[piece] = true;
  }
  return true;
}

}  // namespace vramtrace::simulator
