#include "preload/recorder/record/id_table.h"

#include <sys/mman.h>

namespace vramtrace::record {
namespace {

constexpr size_t kFirstSlots = 1024;

}  // namespace

void* MemoryBudget::Map(size_t bytes) noexcept {
  if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return memory;
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return nullptr;
}

// The slot that holds the key, or the free one where it belongs. For the one thread that may write.
IdTable::Slot* IdTable::FindSlot(Slots* slots, const Key& key) noexcept {
  for (size_t i = key.low & slots->mask;; i = (i + 1) & slots->mask) {
    Slot& slot = slots->slot[i];
    const uint64_t high = slot.high.load(std::memory_order_relaxed);
    if (high == 0 || (high == key.high && slot.low.load(std::memory_order_relaxed) == key.low)) return &slot;
  }
}

uint32_t IdTable::Find(const Key& key) const noexcept {
  const Slots* const slots = slots_.load(std::memory_order_acquire);
  if (slots == nullptr) return 0;
  for (size_t i = key.low & slots->mask;; i = (i + 1) & slots->mask) {
    const Slot& slot = slots->slot[i];
    const uint64_t high = slot.high.load(std::memory_order_acquire);
    if (high == 0) return 0;
    if (high == key.high && slot.low.load(std::memory_order_relaxed) == key.low) {
      return slot.id.load(std::memory_order_relaxed);
    }
  }
}

bool IdTable::Grow(MemoryBudget* budget) noexcept {
  Slots* const old = slots_.load(std::memory_order_relaxed);
  const size_t count = old == nullptr ? kFirstSlots : (old->mask + 1) * 2;
  auto* const grown = static_cast<Slots*>(budget->Map(sizeof(Slots) + count * sizeof(Slot)));
  if (grown == nullptr) return false;
  grown->mask = count - 1;
  for (size_t i = 0; old != nullptr && i <= old->mask; ++i) {
    const Slot& from = old->slot[i];
    const Key key{from.high.load(std::memory_order_relaxed), from.low.load(std::memory_order_relaxed)};
    if (key.high == 0) continue;
    Slot* const to = FindSlot(grown, key);
    to->low.store(key.low, std::memory_order_relaxed);
    to->id.store(from.id.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to->high.store(key.high, std::memory_order_relaxed);
  }
  slots_.store(grown, std::memory_order_release);
  return true;
}

bool IdTable::Reserve(MemoryBudget* budget) noexcept {
  const Slots* const slots = slots_.load(std::memory_order_relaxed);
  // Half full at most: probes stay short, and there is always a free slot to end them.
  return (slots != nullptr && size_ + 1 <= (slots->mask + 1) / 2) || Grow(budget);
}

void IdTable::Put(const Key& key, uint32_t id) noexcept {
  Slot* const slot = FindSlot(slots_.load(std::memory_order_relaxed), key);
  slot->id.store(id, std::memory_order_relaxed);
  if (slot->high.load(std::memory_order_relaxed) != 0) return;
  slot->low.store(key.low, std::memory_order_relaxed);
  slot->high.store(key.high, std::memory_order_release);
  ++size_;
}

}  // namespace vramtrace::record
