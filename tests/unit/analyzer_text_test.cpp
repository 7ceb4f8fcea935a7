#include <gmock/gmock.h>

#include "analyzer/report/table.h"
#include "analyzer/report/text.h"
#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Units, SizesHaveTheUnitAndNeverRoundUpToTheNext) {
  EXPECT_EQ(Size(0), "0 B");
  EXPECT_EQ(Size(1023), "1023 B");
  EXPECT_EQ(Size(1536), "1.5 KiB");
  EXPECT_EQ(Size(1 << 20), "1.0 MiB");
  EXPECT_EQ(Size((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(Size((uint64_t{1} << 30) - 1), "1.00 GiB");
  EXPECT_EQ(Size(uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(SignedSize(-1536), "-1.5 KiB");
  EXPECT_EQ(SignedSize(INT64_MIN), "-8589934592.00 GiB");
}

TEST(Units, DigitsAreGrouped) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(1234567890), "1,234,567,890");
  EXPECT_EQ(SignedGrouped(-1000), "-1,000");
}

TEST(TextTable, ColumnsAlignAndTheLastIsCutInTheMiddle) {
  Table table({Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  table.Add({"weights", "1", "short"});
  table.Add({"a", "1,000", std::string(200, 'x')});
  const std::string text = table.Render(60);
  EXPECT_THAT(text, HasSubstr("  weights      1  short\n"));
  EXPECT_THAT(text, HasSubstr("  a        1,000  xxx"));
  EXPECT_THAT(text, HasSubstr("..."));
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 60U);
  }
}

TEST(TextTable, WideCharactersCountOnce) {
  EXPECT_EQ(DisplayWidth("\xc3\xa4\xc3\xb6"), 2U);
  EXPECT_EQ(CutMiddle("\xc3\xa4\xc3\xb6\xc3\xbc"
                      "12345678",
                      7),
            "\xc3\xa4\xc3\xb6...78");
}

TEST(TextTable, EndIsCutWithDots) {
  EXPECT_EQ(CutEnd("loss_utils.py:41 fixed_cross_entropy", 20), "loss_utils.py:41 ...");
  EXPECT_EQ(CutEnd("short", 20), "short");
}

TEST(Wrap, BreaksAtBlanksWithAnIndent) {
  EXPECT_EQ(Wrap("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(Wrap("unbreakable-and-long", 5, 2), "unbreakable-and-long");
}

v1::Report Small() {
  v1::Report report;
  v1::DeviceReport* device = report.add_devices();
  device->set_name("evil\x1b[31mname");
  device->mutable_peak_allocated()->set_bytes(1024);
  v1::Breakdown* peak = device->mutable_at_peak();
  v1::ClassRow* row = peak->add_classes();
  row->set_key("weight");
  row->set_words("weights");
  row->set_bytes(1000);
  v1::Term* term = peak->mutable_identity()->add_terms();
  term->set_key("weight");
  term->set_words("weights");
  term->set_bytes(1000);
  peak->mutable_identity()->set_device_used(1000);
  v1::Allocation* allocation = peak->add_allocations();
  allocation->set_bytes(1000);
  allocation->set_class_("weight");
  allocation->set_title("layer.weight\nforged line");
  peak->set_allocation_count(1);
  return report;
}

TEST(Text, ControlCharactersOfATraceNeverReachTheTerminal) {
  const std::string text = ToText(Small(), {});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("evil\\x1b[31mname"));
  EXPECT_THAT(text, HasSubstr("layer.weight\\x0aforged line"));
}

TEST(Text, ColorOnlyWhenAsked) {
  EXPECT_THAT(ToText(Small(), {.color = true}), HasSubstr("\x1b[1m"));
  EXPECT_THAT(ToText(Small(), {.color = false}), Not(HasSubstr("\x1b[1m")));
}

TEST(Text, MismatchIsShown) {
  v1::Report report = Small();
  report.mutable_devices(0)->mutable_at_peak()->mutable_identity()->set_mismatch(-7);
  EXPECT_THAT(ToText(report, {}), HasSubstr("do not add up: -7 B"));
}

TEST(Names, OperatorsLoseTheirNamespaces) {
  EXPECT_EQ(symbolize::OperatorName("N5torch8autograd9generated14AddmmBackward0E"), "AddmmBackward0");
  EXPECT_EQ(symbolize::OperatorName("not mangled"), "not mangled");
  EXPECT_EQ(symbolize::Demangle("_Z3foov"), "foo()");
}

}  // namespace
}  // namespace vramtrace::report
