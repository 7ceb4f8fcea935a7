#include <gtest/gtest.h>

#include "analyzer/cli/launch/units.h"

namespace vramtrace::launch {
namespace {

using std::chrono::milliseconds;

TEST(ParseSize, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseSize("123456789"), 123456789U);
  EXPECT_EQ(ParseSize("20GiB"), 20ULL << 30);
  EXPECT_EQ(ParseSize("20g"), 20ULL << 30);
  EXPECT_EQ(ParseSize(" 512 MiB "), 512ULL << 20);
  EXPECT_EQ(ParseSize("1.5GiB"), 3ULL << 29);
  EXPECT_EQ(ParseSize("0.1 KiB"), 102U) << "rounded down to a byte";
  EXPECT_EQ(ParseSize("24GB"), 24'000'000'000U);
  EXPECT_EQ(ParseSize("1TB"), 1'000'000'000'000U);
}

TEST(ParseSize, RefusesWhatIsNotASize) {
  for (const char* text : {"", "GiB", "-1", "1.2.3", "20 apples", "0", "0GiB", "1e9", "99999999999999999999",
                           "9000000TiB", "0x10", "."}) {
    EXPECT_FALSE(ParseSize(text).has_value()) << text;
  }
}

TEST(ParseDuration, ReadsSumsOfUnits) {
  EXPECT_EQ(ParseDuration("90"), milliseconds(90'000));
  EXPECT_EQ(ParseDuration("90s"), milliseconds(90'000));
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("10m"), milliseconds(600'000));
  EXPECT_EQ(ParseDuration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration("1.5 h"), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration("1h 30min"), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration("1h30"), milliseconds(3'630'000)) << "a plain number at the end is seconds";
}

TEST(ParseDuration, RefusesWhatIsNotATime) {
  for (const char* text : {"", "0", "-5", "m", "10 parsecs", "1..5h", "999999999999d", "10 20m"}) {
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  }
}

TEST(DurationText, UsesTheTwoLargestUnits) {
  EXPECT_EQ(DurationText(milliseconds(250)), "250 ms");
  EXPECT_EQ(DurationText(milliseconds(42'000)), "42 s");
  EXPECT_EQ(DurationText(milliseconds(90'000)), "1 min 30 s");
  EXPECT_EQ(DurationText(milliseconds(1'800'000)), "30 min");
  EXPECT_EQ(DurationText(milliseconds(5'400'000)), "1 h 30 min");
}

TEST(ShellQuote, QuotesOnlyWhatAShellWouldChange) {
  EXPECT_EQ(ShellQuote("runs/a-1.vtrace"), "runs/a-1.vtrace");
  EXPECT_EQ(ShellQuote("my run.vtrace"), "'my run.vtrace'");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("$HOME"), "'$HOME'");
  const std::string words[] = {"python", "a b.py"};
  EXPECT_EQ(ShellQuote(words), "python 'a b.py'");
}

}  // namespace
}  // namespace vramtrace::launch
