#include "preload/recorder/record/net_effect.h"

#include <algorithm>

#include "preload/trace/fields.h"

namespace vramtrace::record {
namespace {

// Field numbers of Packet.body (vramtrace.proto).
enum Body : uint32_t {
  kBlockAllocate = 3,
  kBlockFree = 4,
  kDriverAllocate = 5,
  kDriverFree = 6,
  kMemoryQuery = 7,
  kLabel = 12,
  kStep = 14,
  kPhaseMark = 15,
  kOutOfMemory = 16,
  kInputTensor = 17,
  kContext = 21,
  kHostAllocate = 25,
  kHostFree = 26,
  kMemoryMap = 27,
  kMemoryUnmap = 28,
};

// What an event is about.
enum class Topic : uint64_t { kBlock = 1, kDriver, kPhysical, kHost, kMapping, kLabels, kQuery, kLastStep };

uint64_t Mix(uint64_t a) {
  a ^= a >> 32;
  a *= 0xd6e8feb86659fd93U;
  a ^= a >> 32;
  a *= 0xd6e8feb86659fd93U;
  return a ^ a >> 32;
}

// No two things share a key: addresses and handles have less than 52 bits, devices less than 8, and mixing is
// a bijection.
uint64_t KeyOf(Topic topic, uint64_t a, uint64_t b = 0) {
  const uint64_t key = Mix(a ^ (static_cast<uint64_t>(topic) << 60) ^ (b << 52));
  return key == 0 ? 1 : key;
}

constexpr uint64_t kPhysicalKind = 3;      // MemoryKind.MEMORY_KIND_PHYSICAL
constexpr uint64_t kContextReason = 1;     // MemoryQuery.REASON_CONTEXT
constexpr size_t kSqueezeAt = 128 * 1024;  // records

}  // namespace

uint32_t FieldsOfTheWhole(uint32_t body) noexcept {
  if (body == kBlockAllocate) return 1U << 8 | 1U << 9;
  if (body == kBlockFree) return 1U << 6 | 1U << 7;
  return 0;
}

bool NetEffect::Add(const EventView& event) noexcept {
  if (records_.Size() >= kSqueezeAt && left_ < records_.Size() / 2 && !Squeeze()) return false;
  const trace::Varints field = trace::ReadVarints(event.body);
  const auto driver = [&event](uint64_t kind) {
    return KeyOf(kind == kPhysicalKind ? Topic::kPhysical : Topic::kDriver, event.address);
  };
  switch (event.number) {
    case kBlockAllocate:
      return Replace(event, KeyOf(Topic::kBlock, event.address, field[5]));
    case kBlockFree:
      CancelLabels(event.address);
      return Pair(event, KeyOf(Topic::kBlock, event.address, field[4]));
    case kDriverAllocate:
      if (field[8] != 0) break;  // refused: no effect
      return Replace(event, driver(field[5]));
    case kDriverFree:
      if (field[7] != 0) break;
      return Pair(event, driver(field[4]));
    case kHostAllocate:
      if (field[6] != 0) break;
      return Replace(event, KeyOf(Topic::kHost, event.address));
    case kHostFree:
      if (field[5] != 0) break;
      return Pair(event, KeyOf(Topic::kHost, event.address));
    case kMemoryMap:
      return Replace(event, KeyOf(Topic::kMapping, event.address));
    case kMemoryUnmap: {
      // One call may unmap several mappings: then all of them stay, and so does the call.
      const Slot* const slot = Find(KeyOf(Topic::kMapping, event.address));
      if (slot == nullptr || trace::ReadVarints(records_[slot->record].event.body)[2] != field[2]) {
        return Keep(event, 0);
      }
      return Pair(event, KeyOf(Topic::kMapping, event.address));
    }
    case kLabel:
      return AddLabel(event, field[3] << 56 ^ field[4] << 28 ^ field[5]);
    case kInputTensor:
      if (field[7] == 0) break;
      return AddLabel(event, UINT64_MAX - field[1]);
    case kMemoryQuery:
      // What the context cost is told once.
      if (field[4] == kContextReason) return KeepRare(event);
      return Replace(event, KeyOf(Topic::kQuery, field[1]));
    case kStep:
      if (field[2] == 0) break;  // its beginning
      return Replace(event, KeyOf(Topic::kLastStep, 0));
    case kPhaseMark:
      return AddMark(event, field[1], field[2] != 0);
    case kOutOfMemory:
    case kContext:
      return KeepRare(event);
    default:
      return Keep(event, 0);
  }
  ++cancelled_;
  return true;
}

void NetEffect::Clear() noexcept {
  records_.Free();
  table_.Free();
  used_slots_ = left_ = mark_count_ = 0;
  cancelled_ = 0;
  rare_ = 0;
}

bool NetEffect::Keep(const EventView& event, uint64_t key) noexcept {
  const auto place = static_cast<uint32_t>(records_.Size());
  if (!records_.Push({event, key, kNone, true})) return false;
  ++left_;
  return key == 0 || Insert(key, place);
}

void NetEffect::Cancel(uint32_t record) noexcept {
  records_[record].left = false;
  --left_;
  ++cancelled_;
}

// The newest counts; one before it has no effect any more.
bool NetEffect::Replace(const EventView& event, uint64_t key) noexcept {
  if (Slot* const slot = Find(key); slot != nullptr) {
    Cancel(slot->record);
    Erase(slot);
  }
  return Keep(event, key);
}

// The end of something: of nothing in this range, then it ends something older.
bool NetEffect::Pair(const EventView& event, uint64_t key) noexcept {
  Slot* const slot = Find(key);
  if (slot == nullptr) return Keep(event, 0);
  Cancel(slot->record);
  Erase(slot);
  ++cancelled_;
  return true;
}

bool NetEffect::AddLabel(const EventView& event, uint64_t name) noexcept {
  const uint64_t key = KeyOf(Topic::kLabels, event.address);
  uint32_t older = kNone;
  if (Slot* const slot = Find(key); slot != nullptr) {
    older = slot->record;
    Erase(slot);
  }
  if (!Keep(event, key)) return false;
  records_.Back().next = older;
  for (uint32_t* link = &records_.Back().next; *link != kNone; link = &records_[*link].next) {
    const EventView& other = records_[*link].event;
    const trace::Varints field = trace::ReadVarints(other.body);
    const uint64_t its_name =
        other.number == kLabel ? (field[3] << 56 ^ field[4] << 28 ^ field[5]) : UINT64_MAX - field[1];
    if (its_name != name || other.number != event.number) continue;
    Cancel(*link);
    *link = records_[*link].next;
    break;
  }
  return true;
}

void NetEffect::CancelLabels(uint64_t address) noexcept {
  Slot* const slot = Find(KeyOf(Topic::kLabels, address));
  if (slot == nullptr) return;
  for (uint32_t i = slot->record; i != kNone; i = records_[i].next) Cancel(i);
  Erase(slot);
}

bool NetEffect::AddMark(const EventView& event, uint64_t name, bool end) noexcept {
  if (!end) {
    if (!Keep(event, 0)) return false;
    if (mark_count_ < kMostMarks) marks_[mark_count_++] = static_cast<uint32_t>(records_.Size() - 1);
    return true;
  }
  for (size_t i = mark_count_; i-- > 0;) {
    if (trace::ReadVarints(records_[marks_[i]].event.body)[1] != name) continue;
    Cancel(marks_[i]);
    std::copy(marks_ + i + 1, marks_ + mark_count_, marks_ + i);
    --mark_count_;
    ++cancelled_;
    return true;
  }
  return Keep(event, 0);
}

bool NetEffect::KeepRare(const EventView& event) noexcept {
  if (++rare_ <= kMostRare) return Keep(event, 0);
  ++cancelled_;
  return true;
}

// ---------------------------------------------------------------------------------------------------- table

NetEffect::Slot* NetEffect::Find(uint64_t key) noexcept {
  if (table_.Size() == 0) return nullptr;
  const size_t mask = table_.Size() - 1;
  for (size_t i = key & mask;; i = (i + 1) & mask) {
    if (table_[i].key == 0) return nullptr;
    if (table_[i].key == key) return &table_[i];
  }
}

bool NetEffect::Insert(uint64_t key, uint32_t record) noexcept {
  if ((used_slots_ + 1) * 4 > table_.Size() * 3 && !GrowTable()) return false;
  const size_t mask = table_.Size() - 1;
  size_t i = key & mask;
  while (table_[i].key != 0) i = (i + 1) & mask;
  table_[i] = {key, record};
  ++used_slots_;
  return true;
}

// Closes the gap, so that no tombstones pile up.
void NetEffect::Erase(Slot* slot) noexcept {
  const size_t mask = table_.Size() - 1;
  auto hole = static_cast<size_t>(slot - table_.begin());
  for (size_t i = (hole + 1) & mask; table_[i].key != 0; i = (i + 1) & mask) {
    const size_t home = table_[i].key & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = {};
  --used_slots_;
}

bool NetEffect::GrowTable() noexcept {
  MappedArray<Slot> old = table_;
  table_ = {};
  if (!table_.Reset(old.Size() == 0 ? 1024 : 2 * old.Size())) {
    table_ = old;
    return false;
  }
  used_slots_ = 0;
  for (const Slot& slot : old) {
    if (slot.key != 0 && !Insert(slot.key, slot.record)) return false;
  }
  old.Free();
  return true;
}

// Throws the cancelled records away. What a chain or the table names is never cancelled.
bool NetEffect::Squeeze() noexcept {
  MappedArray<uint32_t> moved;  // old place to new
  if (!moved.Reset(records_.Size())) return false;
  size_t place = 0;
  for (size_t i = 0; i < records_.Size(); ++i) {
    moved[i] = records_[i].left ? static_cast<uint32_t>(place) : kNone;
    if (!records_[i].left) continue;
    records_[place] = records_[i];
    ++place;
  }
  records_.Truncate(place);
  for (Record& record : records_) {
    if (record.next != kNone) record.next = moved[record.next];
  }
  for (Slot& slot : table_) {
    if (slot.key != 0) slot.record = moved[slot.record];
  }
  for (size_t i = 0; i < mark_count_; ++i) marks_[i] = moved[marks_[i]];
  moved.Free();
  return true;
}

}  // namespace vramtrace::record
