#include "preload/trace/text.h"

#include <cstdint>
#include <cstring>

namespace vramtrace::trace {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the character at the front of `bytes`, 0 when it is no valid one. Ranges: table 3-7 of the Unicode
// standard, chapter 3.9.
size_t CharacterBytes(std::string_view bytes) noexcept {
  const auto at = [&bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (bytes.size() < length || at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

size_t ValidUtf8Prefix(std::string_view bytes) noexcept {
  size_t position = 0;
  while (position < bytes.size()) {
    // Eight ASCII bytes at a time: nearly every text of a trace is ASCII.
    uint64_t word = 0;
    while (bytes.size() - position >= sizeof(word)) {
      std::memcpy(&word, bytes.data() + position, sizeof(word));
      if ((word & 0x8080808080808080U) != 0) break;
      position += sizeof(word);
    }
    if (position == bytes.size()) break;
    const size_t length = CharacterBytes(bytes.substr(position));
    if (length == 0) break;
    position += length;
  }
  return position;
}

std::string_view CleanText(std::string_view bytes, std::span<char> room, bool* cut) noexcept {
  size_t written = 0;
  *cut = false;
  while (!bytes.empty()) {
    const size_t length = CharacterBytes(bytes);
    const std::string_view character = length == 0 ? kReplacement : bytes.substr(0, length);
    if (room.size() - written < character.size()) {
      *cut = true;
      break;
    }
    std::memcpy(room.data() + written, character.data(), character.size());
    written += character.size();
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return {room.data(), written};
}

}  // namespace vramtrace::trace
