#pragma once
// Walks the fields of encoded protobuf messages without knowing them: what the writer needs to read its own
// chunks again. protozero's reader throws on damage; this one stops.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vramtrace::trace {

struct Field {
  uint32_t number = 0;
  bool is_varint = false;
  uint64_t value = 0;                    // of a varint
  std::span<const std::byte> content{};  // of a length-delimited field
  std::span<const std::byte> bytes{};    // the whole field, tag included
};

class FieldCursor {
 public:
  explicit FieldCursor(std::span<const std::byte> message) : rest_(message) {}

  // False at the end, or where the bytes stop making sense (Broken()).
  [[nodiscard]] bool Next(Field* field) noexcept {
    const std::span<const std::byte> start = rest_;
    uint64_t tag = 0;
    if (rest_.empty()) return false;
    if (!Varint(&tag)) return Fail();
    field->number = static_cast<uint32_t>(tag >> 3);
    field->is_varint = (tag & 7) == 0;
    uint64_t value = 0;
    switch (tag & 7) {
      case 0:
        if (!Varint(&field->value)) return Fail();
        break;
      case 1:
        if (!Skip(8)) return Fail();
        break;
      case 2:
        if (!Varint(&value) || value > rest_.size()) return Fail();
        field->content = rest_.first(static_cast<size_t>(value));
        rest_ = rest_.subspan(static_cast<size_t>(value));
        break;
      case 5:
        if (!Skip(4)) return Fail();
        break;
      default:
        return Fail();
    }
    field->bytes = start.first(start.size() - rest_.size());
    return true;
  }
  [[nodiscard]] bool Broken() const noexcept { return broken_; }

 private:
  bool Fail() noexcept {
    broken_ = true;
    rest_ = {};
    return false;
  }
  bool Skip(size_t bytes) noexcept {
    if (rest_.size() < bytes) return false;
    rest_ = rest_.subspan(bytes);
    return true;
  }
  bool Varint(uint64_t* value) noexcept {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      *value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::span<const std::byte> rest_;
  bool broken_ = false;
};

// The outside of a Packet: its stamp, and the one body that it carries.
struct PacketParts {
  uint64_t sequence_delta = 0;
  uint64_t time_delta_ns = 0;
  uint32_t number = 0;  // of the body; 0: none
  std::span<const std::byte> body{};
};

[[nodiscard]] inline PacketParts SplitPacket(std::span<const std::byte> packet) noexcept {
  PacketParts parts;
  FieldCursor cursor(packet);
  for (Field field; cursor.Next(&field);) {
    if (field.is_varint && field.number == 1) {
      parts.sequence_delta = field.value;
    } else if (field.is_varint && field.number == 2) {
      parts.time_delta_ns = field.value;
    } else if (!field.is_varint) {
      parts.number = field.number;
      parts.body = field.content;
    }
  }
  return parts;
}

// The varint fields 1 to 11 of a body by number, 0 where there is none.
using Varints = std::array<uint64_t, 12>;
[[nodiscard]] inline Varints ReadVarints(std::span<const std::byte> body) noexcept {
  Varints values{};
  FieldCursor cursor(body);
  for (Field field; cursor.Next(&field);) {
    if (field.is_varint && field.number < values.size()) values[field.number] = field.value;
  }
  return values;
}

[[nodiscard]] constexpr int64_t DecodeZigzag(uint64_t value) noexcept {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace vramtrace::trace
