#pragma once
// Key to 32-bit id. Find() takes no lock and may run beside Put(), which one thread at a time may call.
// Entries are never removed. Memory comes from mmap and is counted against a budget shared by all tables.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/recorder/record/hash.h"

namespace vramtrace::record {

// Bytes that the recorder's tables may take in all.
class MemoryBudget {
 public:
  constexpr MemoryBudget() = default;
  void SetLimit(uint64_t bytes) noexcept { limit_ = bytes; }
  // Zeroed pages, or nullptr when the budget or the system has no more. Never given back.
  [[nodiscard]] void* Map(size_t bytes) noexcept;
  [[nodiscard]] uint64_t Used() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> used_{0};
  uint64_t limit_ = 0;
};

class IdTable {
 public:
  constexpr IdTable() = default;

  // 0 when the key is not known.
  [[nodiscard]] uint32_t Find(const Key& key) const noexcept;

  // Makes sure that the next Put() has room. False when the budget has no more.
  [[nodiscard]] bool Reserve(MemoryBudget* budget) noexcept;

  // Sets the id (not 0) of a key, known or not. Reserve() came before, and said yes.
  void Put(const Key& key, uint32_t id) noexcept;

  [[nodiscard]] size_t Size() const noexcept { return size_; }

 private:
  struct Slot {
    std::atomic<uint64_t> high;  // written last: 0 is a free slot
    std::atomic<uint64_t> low;
    std::atomic<uint32_t> id;
  };
  // A table that grew is not freed: a reader may still be in it, and finds there what was known when it
  // began.
  struct Slots {
    size_t mask;
    Slot slot[];
  };

  [[nodiscard]] static Slot* FindSlot(Slots* slots, const Key& key) noexcept;
  [[nodiscard]] bool Grow(MemoryBudget* budget) noexcept;

  std::atomic<Slots*> slots_{nullptr};
  size_t size_ = 0;
};

}  // namespace vramtrace::record
