#include "analyzer/viewer_data/palette.h"

namespace vramtrace::viewer_data {
namespace {

std::string_view KeyOfBand(size_t band) {
  return band < attribution::kMemoryClassCount
             ? attribution::KeyOf(static_cast<attribution::MemoryClass>(band))
             : "rounding";
}

}  // namespace

size_t BandOf(std::string_view key) {
  size_t band = 0;
  while (band < kBands && KeyOfBand(band) != key) ++band;
  return band;
}

const ClassColor& ColorOf(size_t band) {
  const ClassColor* unknown = nullptr;
  for (const ClassColor& color : kPalette) {
    if (color.key == KeyOfBand(band)) return color;
    if (color.key == "unknown") unknown = &color;
  }
  return *unknown;
}

std::string_view WordsOfBand(size_t band) {
  return band < attribution::kMemoryClassCount
             ? attribution::WordsOf(static_cast<attribution::MemoryClass>(band))
             : "allocator rounding";
}

}  // namespace vramtrace::viewer_data
