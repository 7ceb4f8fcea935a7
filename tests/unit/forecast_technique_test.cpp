// The table of techniques, how one is named, and in what order several are applied.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analyzer/forecast/technique.h"

namespace vramtrace::forecast {
namespace {

using ::testing::HasSubstr;

TEST(TechniqueTable, EveryRowIsComplete) {
  std::set<std::string_view> keys;
  for (const Technique& technique : Techniques()) {
    SCOPED_TRACE(technique.key);
    EXPECT_TRUE(keys.insert(technique.key).second);
    EXPECT_FALSE(technique.words.empty());
    EXPECT_FALSE(technique.pytorch.empty());
    EXPECT_FALSE(technique.source.empty());
    EXPECT_LE(technique.slower_low, technique.slower_high);
    EXPECT_LE(technique.residual_low, 0);
    EXPECT_GE(technique.residual_high, 0);
    EXPECT_EQ(technique.price == Price::kChangesTraining, !technique.training.empty());
    EXPECT_NE(technique.is_on, nullptr);
    EXPECT_NE(technique.apply, nullptr);
    EXPECT_EQ(FindTechnique(technique.key), &technique);
  }
  EXPECT_GE(keys.size(), 1U);
}

TEST(TechniqueText, ReadsOptions) {
  const auto parsed = ParseTechnique("checkpointing:every=3,rank=8,targets=attention,cards=4");
  ASSERT_TRUE(std::holds_alternative<Chosen>(parsed));
  const Chosen& chosen = std::get<Chosen>(parsed);
  EXPECT_EQ(chosen.technique, FindTechnique("checkpointing"));
  EXPECT_EQ(chosen.options.every, 3U);
  EXPECT_EQ(chosen.options.rank, 8U);
  EXPECT_EQ(chosen.options.targets, "attention");
  EXPECT_EQ(chosen.options.cards, 4U);
}

TEST(TechniqueText, SaysWhatIsWrong) {
  const auto error = [](std::string_view text) { return std::get<std::string>(ParseTechnique(text)); };
  EXPECT_THAT(error("checkpoint"), HasSubstr("did you mean checkpointing, "));
  EXPECT_THAT(error("nothing-like-it"), HasSubstr(", checkpointing"));
  EXPECT_THAT(error(""), HasSubstr("there is no technique \"\""));
  EXPECT_THAT(error("checkpointing:every"), HasSubstr("needs a value"));
  EXPECT_THAT(error("checkpointing:every=0"), HasSubstr("a number from 1 to 1000"));
  EXPECT_THAT(error("checkpointing:every=2x"), HasSubstr("\"2x\""));
  EXPECT_THAT(error("checkpointing:every=99999999999"), HasSubstr("a number"));
  EXPECT_THAT(error("checkpointing:targets=head"), HasSubstr("linear"));
  EXPECT_THAT(error("checkpointing:depth=2"), HasSubstr("no option \"depth\""));
}

TEST(TechniqueApply, SaysWhichCannotBe) {
  const Chosen chosen = std::get<Chosen>(ParseTechnique("checkpointing"));
  const auto result = ApplyTechniques(Stream{}, {&chosen, 1});
  ASSERT_TRUE(std::holds_alternative<std::string>(result));
  EXPECT_EQ(std::get<std::string>(result), "checkpointing cannot be applied: no module of the model repeats");
}

}  // namespace
}  // namespace vramtrace::forecast
