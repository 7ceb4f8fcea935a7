#pragma once
// 128-bit keys of interned things. A table keeps the key, not the thing: with 2^21 entries the chance that
// any two of them collide is about 2^-87.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vramtrace::record {

struct Key {
  uint64_t high = 0;  // never 0 in a made key: 0 marks a free slot
  uint64_t low = 0;
  bool operator==(const Key&) const = default;
};

// Folds words into a key: two independent multiply-and-fold lanes (64x64 to 128 bits, halves combined), as in
// the wyhash family. One multiplication a lane and pair of words, which the processor overlaps.
class KeyMaker {
 public:
  explicit KeyMaker(uint64_t seed) : high_(seed ^ kSecret[0]), low_(seed * kSecret[1] ^ kSecret[2]) {}

  void Add(uint64_t first, uint64_t second) {
    high_ = Fold(high_ ^ first, second ^ kSecret[1]);
    low_ = Fold(low_ ^ second, first ^ kSecret[3]);
  }

  [[nodiscard]] Key Finish() const {
    const uint64_t high = Fold(high_ ^ kSecret[2], low_ ^ kSecret[0]);
    const uint64_t low = Fold(low_ ^ kSecret[1], high_ ^ kSecret[3]);
    return {high == 0 ? 1 : high, low};
  }

 private:
  // Odd constants with as many ones as zeros in every byte: digits of pi and e, made odd.
  static constexpr uint64_t kSecret[4] = {0x243f6a8885a308d3U, 0x13198a2e03707345U, 0xa4093822299f31d1U,
                                          0xb7e151628aed2a6bU};

  static uint64_t Fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    // Without the xor of the inputs a zero on one side would swallow the other.
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ a ^ (b << 1 | b >> 63);
  }

  uint64_t high_;
  uint64_t low_;
};

// What a key is of: keys of different kinds never meet, but a seed a kind costs nothing.
enum class KeyKind : uint64_t {
  kText = 1,
  kCode,
  kRawFrame,
  kFrame,
  kStack,
  kCapture,
  kName,
  kCaller,
  kModule
};

[[nodiscard]] inline Key MakeKey(KeyKind kind, uint64_t first, uint64_t second = 0, uint64_t third = 0,
                                 uint64_t fourth = 0) {
  KeyMaker maker(static_cast<uint64_t>(kind));
  maker.Add(first, second);
  maker.Add(third, fourth);
  return maker.Finish();
}

[[nodiscard]] inline Key MakeTextKey(std::string_view text) {
  KeyMaker maker(static_cast<uint64_t>(KeyKind::kText) ^ text.size() << 8);
  while (!text.empty()) {
    uint64_t words[2] = {};
    const size_t used = text.size() < sizeof(words) ? text.size() : sizeof(words);
    std::memcpy(words, text.data(), used);
    maker.Add(words[0], words[1]);
    text.remove_prefix(used);
  }
  return maker.Finish();
}

}  // namespace vramtrace::record
