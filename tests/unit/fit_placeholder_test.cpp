#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/fit/placeholder.h"

namespace vramtrace::fit {
namespace {

using Words = std::vector<std::string>;
using ::testing::HasSubstr;

std::string NameIn(const Words& command, std::string_view asked = {}) {
  const auto found = FindPlaceholder(command, asked);
  return std::holds_alternative<Placeholder>(found) ? std::get<Placeholder>(found).name : "";
}
std::string ErrorOf(const Words& command, std::string_view asked = {}) {
  const auto found = FindPlaceholder(command, asked);
  return std::holds_alternative<std::string>(found) ? std::get<std::string>(found) : "";
}

TEST(Placeholder, IsFoundAnywhereInAWord) {
  EXPECT_EQ(NameIn({"python", "t.py", "--batch", "{batch}"}), "batch");
  EXPECT_EQ(NameIn({"python", "t.py", "--batch={batch}"}), "batch");
  EXPECT_EQ(NameIn({"python", "t.py", "train.micro={seq_len},x"}), "seq_len");
}

TEST(Placeholder, JsonIsNone) {
  EXPECT_THAT(ErrorOf({"t", "--config", "{\"lr\": {\"max\": 1}}"}), HasSubstr("no placeholder"));
  EXPECT_THAT(ErrorOf({"t", "{", "}", "{}"}), HasSubstr("--batch {batch}"));
}

TEST(Placeholder, OneOfSeveralMustBeChosen) {
  EXPECT_EQ(NameIn({"t", "{batch}", "{seq}"}), "batch") << "the usual name";
  EXPECT_EQ(NameIn({"t", "{batch}", "{seq}"}, "seq"), "seq");
  EXPECT_THAT(ErrorOf({"t", "{a}", "{b}"}), HasSubstr("--vary"));
  EXPECT_THAT(ErrorOf({"t", "{a}"}, "seq"), HasSubstr("no {seq}, but {a}"));
}

TEST(Placeholder, IsFilledEverywhere) {
  EXPECT_EQ(Fill(Words{"t", "{n}/{n}", "{m}", "--n={n}"}, "n", 12), (Words{"t", "12/12", "{m}", "--n=12"}));
}

TEST(Placeholder, IsGuessedInARecordedCommand) {
  const auto guess = [](const Words& command, uint64_t batch) {
    const auto found = WithPlaceholder(command, batch);
    return std::holds_alternative<Words>(found) ? std::get<Words>(found)
                                                : Words{"!" + std::get<std::string>(found)};
  };
  EXPECT_EQ(guess({"t.py", "--batch", "8", "--steps", "8"}, 8),
            (Words{"t.py", "--batch", "{batch}", "--steps", "8"}));
  EXPECT_EQ(guess({"t.py", "--per_device_train_batch_size=8"}, 8),
            (Words{"t.py", "--per_device_train_batch_size={batch}"}));
  EXPECT_THAT(guess({"t.py", "--batch", "16"}, 8)[0], HasSubstr("no option"));
  EXPECT_THAT(guess({"t.py", "--train-batch", "8", "--eval-batch", "8"}, 8)[0], HasSubstr("several options"));
}

}  // namespace
}  // namespace vramtrace::fit
