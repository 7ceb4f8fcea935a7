#pragma once
// Colours of the classes in pictures that are drawn without a browser: those of viewer/src/draw/theme.ts
// (tests/unit/viewer_pictures_test.cpp compares them), and the order in which classes are stacked.

#include <array>
#include <cstdint>
#include <string_view>

#include "analyzer/viewer_data/curve.h"

namespace vramtrace::viewer_data {

struct ClassColor {
  std::string_view key;  // attribution::KeyOf, or "rounding"
  uint32_t rgb;
  char letter;  // where there are no colours
};

// From the bottom of the stack up.
inline constexpr std::array<ClassColor, 13> kPalette{{
    {"weight", 0x0072B2, 'w'},
    {"buffer", 0x6699CC, 'b'},
    {"optimizer_state", 0xE69F00, 'o'},
    {"gradient", 0x009E73, 'g'},
    {"activation", 0xD55E00, 'a'},
    {"save_copy", 0xAA4499, 's'},
    {"output", 0xCC79A7, 'u'},
    {"input", 0xF0E442, 'i'},
    {"communication", 0x44AA99, 'c'},
    {"workspace", 0x999933, 'k'},
    {"temporary", 0x56B4E9, 't'},
    {"unknown", 0x8A8F98, '?'},
    {"rounding", 0xC3C7CE, 'r'},
}};

// The band of a row of the palette; kBands: no such class.
[[nodiscard]] size_t BandOf(std::string_view key);
[[nodiscard]] const ClassColor& ColorOf(size_t band);
[[nodiscard]] std::string_view WordsOfBand(size_t band);

}  // namespace vramtrace::viewer_data
