#pragma once
// What is left of a range of events when only their lasting effect counts: an allocation and its free cancel
// out, the newest answer of a device stands for those before it. Every event that is left is the event as it
// was recorded, with its number, time and stack: a reader that applies what is left has exactly the live set
// that the whole range would have given it, and never more alive in between than there was.

#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/recorder/record/mapped_array.h"

namespace vramtrace::record {

// Fields of an event that are not true among what is left: the caching allocator's sums at the time.
[[nodiscard]] uint32_t FieldsOfTheWhole(uint32_t body) noexcept;

// An event of a chunk. `body` points into the chunk, which stays mapped as long as the event is used.
struct EventView {
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
  uint32_t thread = 0;
  uint32_t number = 0;  // of its body in Packet
  std::span<const std::byte> body{};
  uint64_t address = 0;        // absolute
  uint32_t address_field = 0;  // number of its address_delta; 0: it has none
};

class NetEffect {
 public:
  constexpr NetEffect() = default;

  // In the order of the sequence. False where memory ran out: the result cannot be used.
  [[nodiscard]] bool Add(const EventView& event) noexcept;

  // Events that were added and have no lasting effect.
  [[nodiscard]] uint64_t Cancelled() const noexcept { return cancelled_; }

  template <typename Function>
  void ForEachLeft(Function function) noexcept {
    for (Record& record : records_) {
      if (record.left) function(record.event);
    }
  }

  // Forgets everything and gives the memory back.
  void Clear() noexcept;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kMostRare = 256;  // refusals and contexts: enough to tell, never a growing file
  struct Record {
    EventView event;
    uint64_t key = 0;       // what cancels it: 0 nothing
    uint32_t next = kNone;  // labels of one address
    bool left = false;
  };
  struct Slot {
    uint64_t key;
    uint32_t record;
  };

  [[nodiscard]] bool Keep(const EventView& event, uint64_t key) noexcept;
  void Cancel(uint32_t record) noexcept;
  [[nodiscard]] bool Replace(const EventView& event, uint64_t key) noexcept;
  [[nodiscard]] bool Pair(const EventView& event, uint64_t key) noexcept;
  [[nodiscard]] bool AddLabel(const EventView& event, uint64_t name) noexcept;
  void CancelLabels(uint64_t address) noexcept;
  [[nodiscard]] bool AddMark(const EventView& event, uint64_t name, bool end) noexcept;
  [[nodiscard]] bool KeepRare(const EventView& event) noexcept;

  [[nodiscard]] Slot* Find(uint64_t key) noexcept;
  [[nodiscard]] bool Insert(uint64_t key, uint32_t record) noexcept;
  void Erase(Slot* slot) noexcept;
  [[nodiscard]] bool GrowTable() noexcept;
  [[nodiscard]] bool Squeeze() noexcept;

  MappedArray<Record> records_;
  MappedArray<Slot> table_;  // open addressing; a key of 0 is free
  size_t used_slots_ = 0;
  size_t left_ = 0;
  uint64_t cancelled_ = 0;
  uint32_t rare_ = 0;
  static constexpr size_t kMostMarks = 32;
  uint32_t marks_[kMostMarks] = {};  // phases that began and did not end
  size_t mark_count_ = 0;
};

}  // namespace vramtrace::record
