#include <gtest/gtest.h>

#include <string>

#include "preload/trace/text.h"

namespace vramtrace::trace {
namespace {

struct Case {
  const char* what;
  std::string text;
  size_t valid;
};

// The bad sequences are those of the Unicode standard's tables 3-8 to 3-11 and RFC 3629, section 3.
const Case kCases[] = {
    {"ascii", "transformer.h.0.attn", 20},
    {"two bytes", "a\xC3\xA4", 3},
    {"three bytes", "\xE2\x82\xAC", 3},
    {"four bytes", "\xF0\x9F\x98\x80", 4},
    {"last code point", "\xF4\x8F\xBF\xBF", 4},
    {"above the last code point", "a\xF4\x90\x80\x80", 1},
    {"overlong two", "a\xC0\xAF", 1},
    {"overlong three", "a\xE0\x9F\xBF", 1},
    {"overlong four", "a\xF0\x8F\xBF\xBF", 1},
    {"surrogate", "a\xED\xA0\x80", 1},
    {"last before the surrogates", "\xED\x9F\xBF", 3},
    {"lonely continuation", "a\x80", 1},
    {"cut character", "a\xE2\x82", 1},
    {"latin-1 among ascii of eight",
     "12345678\xE4"
     "1234567",
     8},
    {"nul is a character", std::string("a\0b", 3), 3},
};

TEST(ValidUtf8Prefix, EndsAtTheFirstByteThatIsNone) {
  for (const Case& c : kCases) EXPECT_EQ(ValidUtf8Prefix(c.text), c.valid) << c.what;
}

TEST(CleanText, ReplacesWhatIsNoTextAndKeepsTheRest) {
  char room[64];
  bool cut = true;
  EXPECT_EQ(CleanText("a\xE4"
                      "b\xE2\x82\xAC",
                      room, &cut),
            "a\xEF\xBF\xBD"
            "b\xE2\x82\xAC");
  EXPECT_FALSE(cut);
  for (const Case& c : kCases) {
    const std::string_view clean = CleanText(c.text, room, &cut);
    EXPECT_EQ(ValidUtf8Prefix(clean), clean.size()) << c.what;
  }
}

TEST(CleanText, CutsAtACharacterBoundary) {
  char room[8];
  bool cut = false;
  for (size_t size = 0; size <= sizeof(room); ++size) {
    const std::string_view clean = CleanText("a\xE2\x82\xAC\xF0\x9F\x98\x80", std::span(room, size), &cut);
    EXPECT_EQ(ValidUtf8Prefix(clean), clean.size());
    EXPECT_EQ(cut, size < 8) << size;
    EXPECT_EQ(clean.size(), size < 1 ? 0U : size < 4 ? 1U : size < 8 ? 4U : 8U);
  }
}

}  // namespace
}  // namespace vramtrace::trace
