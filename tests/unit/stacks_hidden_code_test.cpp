#include <gtest/gtest.h>

#include <vector>

#include "preload/recorder/stacks/hidden_code.h"

namespace vramtrace::stacks {
namespace {

TEST(HiddenCode, FindsWhatWasHiddenAndNothingElse) {
  // Spread as an allocator spreads objects of one size.
  constexpr size_t kStride = 208;
  std::vector<char> memory(400 * kStride);
  for (size_t i = 0; i < 400; i += 2) HideCode(&memory[i * kStride]);
  HideCode(&memory[0]);
  for (size_t i = 0; i < 400; ++i) EXPECT_EQ(IsHiddenCode(&memory[i * kStride]), i % 2 == 0) << i;
}

// More than there is room for is shown rather than looked for without end.
TEST(HiddenCode, AFullTableStillAnswers) {
  std::vector<char> memory(3 * kHiddenSlots * 16);
  for (size_t i = 0; i < 2 * kHiddenSlots; ++i) HideCode(&memory[i * 16]);
  EXPECT_FALSE(IsHiddenCode(&memory[(3 * kHiddenSlots - 1) * 16]));
}

}  // namespace
}  // namespace vramtrace::stacks
