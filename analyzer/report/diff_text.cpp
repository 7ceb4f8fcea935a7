#include <fmt/format.h>

#include <algorithm>

#include "analyzer/attribution/verdict.h"
#include "analyzer/report/diff.h"
#include "analyzer/report/refusal_text.h"
#include "analyzer/report/table.h"
#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using symbolize::Printable;
using enum Table::Align;

constexpr size_t kWidth = 100;

// "+1.20 GiB"
std::string Change(int64_t bytes) { return (bytes > 0 ? "+" : "") + SignedSize(bytes); }

std::string Words(const std::string& key) {
  for (size_t i = 0; i < attribution::kMemoryClassCount; ++i) {
    const auto memory_class = static_cast<attribution::MemoryClass>(i);
    if (attribution::KeyOf(memory_class) == key) return std::string(attribution::WordsOf(memory_class));
  }
  return key;
}

class Writer {
 public:
  explicit Writer(const DiffTextOptions& options) : options_(options) {}

  std::string Run(const v1::Diff& diff) {
    if (!diff.has_a()) return "One of the traces holds no device: there is nothing to compare.\n";
    WritePeaks(diff);
    WriteReasons(diff);
    WriteRows("By class", diff.classes(), Words);
    WriteRows("By module", diff.modules(), Printable);
    WriteRows("By line", diff.sites(), Printable);
    for (const v1::Note& note : diff.notes()) Line("Note: " + Wrap(Printable(note.text()), kWidth, 6));
    while (text_.ends_with("\n\n")) text_.pop_back();
    return std::move(text_);
  }

 private:
  void Line(std::string_view line) {
    text_ += line;
    text_ += '\n';
  }
  [[nodiscard]] std::string Bold(std::string text) const {
    return options_.color ? "\x1b[1m" + text + "\x1b[0m" : text;
  }

  static std::string SideText(const v1::DiffSide& side) {
    std::string text = Printable(side.trace());
    if (!side.instant().empty()) {
      text += fmt::format("  at {}: {}", Printable(side.instant()), Place(side.moment()));
    }
    if (side.at_refusal()) text += "  (ended out of memory)";
    return text;
  }

  void WriteTraffic(const v1::Traffic& traffic) {
    const std::string text = fmt::format(
        "Between them {} in {} were allocated, {} in {} freed; of those allocated, {} in {} are alive in B.",
        Size(traffic.allocated_bytes()), Count(traffic.allocated_blocks(), "block"),
        Size(traffic.freed_bytes()), Count(traffic.freed_blocks(), "block"), Size(traffic.kept_bytes()),
        Count(traffic.kept_blocks(), "block"));
    Line(Wrap(text, kWidth, 0));
    Line("");
  }

  void WritePeaks(const v1::Diff& diff) {
    constexpr size_t kIndent = 3;
    Line("A  " + Wrap(SideText(diff.a()), kWidth, kIndent));
    Line("B  " + Wrap(SideText(diff.b()), kWidth, kIndent));
    Line("");
    if (diff.has_traffic()) WriteTraffic(diff.traffic());
    Line(Bold(diff.a().instant().empty() ? "Peaks" : "Memory"));
    Table table({kLeft, kRight, kRight, kRight});
    table.Add({"", "A", "B", "change"});
    const auto add = [&](const char* what, uint64_t a, uint64_t b) {
      if (a == 0 && b == 0) return;
      table.Add({what, Size(a), Size(b), Change(static_cast<int64_t>(b) - static_cast<int64_t>(a))});
    };
    add("allocated", diff.a().allocated(), diff.b().allocated());
    add("reserved", diff.a().reserved(), diff.b().reserved());
    add("device used", diff.a().used(), diff.b().used());
    text_ += table.Render(kWidth);
    Line("");
  }

  void WriteReasons(const v1::Diff& diff) {
    if (diff.has_traffic()) return;  // one run
    if (diff.reasons_size() == 0) {
      Line("The runs themselves look alike: same batch, inputs, optimizer, PyTorch, device and command.");
      Line("");
      return;
    }
    Line(Bold("What differs between the runs"));
    for (const v1::DiffReason& reason : diff.reasons()) {
      constexpr size_t kIndent = 14;
      const auto side = [](const std::string& text) {
        return text.empty() ? std::string("none") : CutMiddle(Printable(text), kWidth);
      };
      Line(fmt::format(
          "  {:<11} {}", reason.what(),
          Wrap(fmt::format("{} in A, {} in B", side(reason.a()), side(reason.b())), kWidth, kIndent)));
    }
    Line("");
  }

  template <typename Rows, typename Name>
  void WriteRows(const char* title, const Rows& rows, Name name) {
    Line(Bold(title));
    Table table({kRight, kRight, kRight, kLeft, kLeft});
    table.Add({"A", "B", "change", "", ""});
    size_t shown = 0;
    size_t same = 0;
    for (const v1::DiffRow& row : rows) {
      if (row.change() == 0) {
        ++same;
        continue;
      }
      if (shown++ == options_.rows) break;
      const char* mark = row.blocks_a() == 0 ? "new" : row.blocks_b() == 0 ? "gone" : "";
      table.Add({Size(row.a()), Size(row.b()), Change(row.change()), mark, name(row.name())});
    }
    if (shown == 0) {
      Line("  no change");
    } else {
      text_ += table.Render(kWidth);
    }
    Line("");
  }

  const DiffTextOptions& options_;
  std::string text_;
};

}  // namespace

std::string DiffText(const v1::Diff& diff, const DiffTextOptions& options) {
  return Writer(options).Run(diff);
}

}  // namespace vramtrace::report
