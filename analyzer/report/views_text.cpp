#include "analyzer/report/views_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/refusal_text.h"
#include "analyzer/report/table.h"
#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using symbolize::Printable;
using enum Table::Align;

constexpr size_t kWidth = 100;

class Writer {
 public:
  Writer(const v1::DeviceReport& device, const v1::Breakdown& breakdown, const ViewOptions& options)
      : device_(device), views_(breakdown.views()), options_(options) {}

  void Modules() {
    uint64_t all = 0;
    for (const v1::ModuleRow& row : views_.modules()) all = std::max(all, row.subtree());
    Title("By module: own bytes, and with what is below it", {});
    Table table({kLeft, kRight, kRight, kRight, kRight, kRight, kRight});
    table.Add({"module", "own", "with below", "weights", "gradients", "states", "activations"});
    // What is small is left out with all below it: a child is never larger than its parent.
    constexpr uint64_t kSmallest = 200;
    Shown shown(this, static_cast<size_t>(views_.modules_size()));
    for (const v1::ModuleRow& row : views_.modules()) {
      if (row.subtree() < all / kSmallest || !shown.Next()) continue;
      table.Add({ModuleName(row), Short(row.own()), Short(row.subtree()), Short(row.weights()),
                 Short(row.gradients()), Short(row.optimizer_state()), Short(row.activations())});
    }
    End(table, shown);
  }

  void Tensors() {
    Title("By tensor", {});
    Table table({kRight, kRight, kRight, kRight, kLeft});
    table.Add({"weight", "gradient", "states", "copies", "name"});
    Shown shown(this, static_cast<size_t>(views_.tensors_size()));
    for (const v1::TensorRow& row : views_.tensors()) {
      if (!shown.Next()) break;
      table.Add({Short(row.weight()), Short(row.gradient()), Short(row.optimizer_state()),
                 Short(row.copies()), Printable(row.name())});
    }
    End(table, shown);
  }

  void Stacks() {
    Title("By stack, the innermost line first", {});
    constexpr int kFrames = 5;
    Shown shown(this, static_cast<size_t>(views_.stacks_size()));
    for (const v1::StackRow& row : views_.stacks()) {
      if (!shown.Next()) break;
      Line(fmt::format("  {} in {}{}", Size(row.bytes()), Count(row.blocks(), "block"),
                       row.of_forward() ? ", allocated by the backward of" : ""));
      // Which of torch's functions, then the program's own lines.
      const auto last = static_cast<uint32_t>(row.frames_size()) - 1;
      if (row.own_size() > 0 && row.own(0) != last) Frame(row.frames(static_cast<int>(last)));
      for (int i = 0; i < std::min(kFrames, row.own_size()); ++i) {
        Frame(row.frames(static_cast<int>(row.own(i))));
      }
      if (row.own().empty()) Frame(row.frames().empty() ? "(no Python frame)" : *row.frames().rbegin());
    }
    Rest(shown);
  }

  void Libraries() {
    Title("By library that asked the driver", {});
    Table table({kRight, kRight, kLeft, kLeft});
    table.Add({"bytes", "allocations", "library", ""});
    for (const v1::LibraryRow& row : views_.libraries()) {
      table.Add({Size(row.bytes()), Grouped(row.count()), Printable(row.library()),
                 row.caching_allocator() ? "PyTorch's caching allocator" : ""});
    }
    End(table, Shown(this, 0));
  }

  void Sizes() {
    Title("By size", {});
    Table table({kRight, kRight, kRight, kRight});
    table.Add({"each", "exactly", "blocks", "together"});
    Shown shown(this, static_cast<size_t>(views_.sizes_size()));
    for (const v1::CountedRow& row : views_.sizes()) {
      if (!shown.Next()) break;
      table.Add({Size(row.value()), Grouped(row.value()) + " B", Grouped(row.blocks()), Size(row.bytes())});
    }
    End(table, shown);
  }

  void Ages() {
    Title("By age, in steps", {});
    Table table({kRight, kRight, kRight});
    table.Add({"age", "blocks", "bytes"});
    Shown shown(this, static_cast<size_t>(views_.ages_size()));
    for (const v1::CountedRow& row : views_.ages()) {
      if (!shown.Next()) break;
      table.Add({Grouped(row.value()), Grouped(row.blocks()), Size(row.bytes())});
    }
    End(table, shown);
  }

  void Segments() {
    Title("Segments of the caching allocator, those with most free bytes first; what pins each", {});
    std::vector<const v1::SegmentRow*> rows;
    for (const v1::SegmentRow& row : views_.segments()) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(), [](const v1::SegmentRow* a, const v1::SegmentRow* b) {
      return a->bytes() - a->live_bytes() > b->bytes() - b->live_bytes();
    });
    Table table({kLeft, kRight, kRight, kRight, kRight, kLeft});
    table.Add({"address", "segment", "live", "holes", "largest", "held by"});
    Shown shown(this, rows.size());
    for (const v1::SegmentRow* row : rows) {
      if (!shown.Next()) break;
      table.Add({fmt::format("{:#x}", row->address()), Short(row->bytes()), Short(row->live_bytes()),
                 Grouped(row->holes()), Short(row->largest_hole()), PinText(*row)});
    }
    End(table, shown);
  }

  void Peaks() {
    Title("Peaks within 10 % of the highest, and what sets them apart from it", {});
    Shown shown(this, static_cast<size_t>(device_.local_peaks_size()));
    for (const v1::LocalPeak& peak : device_.local_peaks()) {
      if (!shown.Next()) break;
      Line(fmt::format("  {}  {}{}", Size(peak.bytes()), Place(peak.moment()),
                       peak.times() > 1 ? fmt::format(", {} times", Grouped(peak.times())) : ""));
      std::string changes;
      for (const v1::ClassChange& change : peak.changes()) {
        if (change.change() == 0) continue;
        changes += fmt::format("{}{}{} {}", changes.empty() ? "" : ", ", change.change() > 0 ? "+" : "",
                               SignedSize(change.change()), change.words());
      }
      constexpr size_t kIndent = 6;
      if (!changes.empty()) Line("      " + Wrap(changes, kWidth, kIndent));
    }
    Rest(shown);
  }

  void Steps() {
    Title("By step", {});
    Table table({kRight, kRight, kRight, kRight, kRight, kRight});
    table.Add({"step", "peak", "minimum", "reserved", "retries", "time"});
    Shown shown(this, static_cast<size_t>(device_.steps_size()));
    for (const v1::StepRow& row : device_.steps()) {
      if (!shown.Next()) break;
      table.Add({Grouped(row.step()), Size(row.peak()), Size(row.minimum()), Size(row.reserved()),
                 Grouped(row.retries()),
                 fmt::format("{:.3f} s", static_cast<double>(row.end_ns() - row.begin_ns()) / 1e9)});
    }
    End(table, shown);
  }

  std::string Take() { return std::move(text_); }

 private:
  // Counts rows against the most that are shown.
  class Shown {
   public:
    Shown(const Writer* writer, size_t all) : most_(writer->options_.rows), all_(all) {}
    bool Next() { return shown_ < most_ && ++shown_ > 0; }
    [[nodiscard]] size_t left() const { return shown_ < most_ ? 0 : all_ - std::min(all_, shown_); }

   private:
    size_t most_;
    size_t all_;
    size_t shown_ = 0;
  };

  void Line(std::string_view line) {
    text_ += line;
    text_ += '\n';
  }
  void Title(std::string_view title, std::string_view more) {
    Line(options_.color ? fmt::format("\x1b[1m{}\x1b[0m{}", title, more) : fmt::format("{}{}", title, more));
  }
  void Rest(const Shown& shown) {
    if (shown.left() > 0) Line(fmt::format("  and {} more: --top", Grouped(shown.left())));
    Line("");
  }
  void End(const Table& table, const Shown& shown) {
    text_ += table.Render(kWidth);
    Rest(shown);
  }
  void Frame(const std::string& frame) {
    constexpr size_t kIndent = 6;
    Line("      " + CutMiddle(Printable(frame), kWidth - kIndent));
  }

  static std::string Short(uint64_t bytes) { return bytes == 0 ? "-" : Size(bytes); }

  static std::string ModuleName(const v1::ModuleRow& row) {
    constexpr size_t kNameWidth = 29;
    constexpr uint32_t kDeepest = 8;
    const std::string indent(2UL * std::min(row.depth(), kDeepest), ' ');
    const std::string own = row.path().substr(row.path().rfind('.') + 1);
    const std::string name = row.path().empty() ? "(all)" : Printable(own);
    return CutEnd(indent + name, kNameWidth);
  }

  static std::string PinText(const v1::SegmentRow& row) {
    if (row.live_blocks() == 0) return "nothing: it can go back";
    const v1::Pin& pin = row.pins(0);
    std::string text = fmt::format("{} {}", Size(pin.bytes()), pin.class_());
    if (!pin.title().empty()) text += " " + Printable(pin.title());
    if (row.live_blocks() > 1) text += fmt::format(" and {} more", Grouped(row.live_blocks() - 1));
    return text;
  }

  const v1::DeviceReport& device_;
  const v1::Views& views_;
  const ViewOptions& options_;
  std::string text_;
};

struct View {
  std::string_view name;
  void (Writer::*write)();
};

constexpr View kViews[] = {
    {"module", &Writer::Modules},    {"tensor", &Writer::Tensors}, {"stack", &Writer::Stacks},
    {"library", &Writer::Libraries}, {"size", &Writer::Sizes},     {"age", &Writer::Ages},
    {"segment", &Writer::Segments},  {"peak", &Writer::Peaks},     {"step", &Writer::Steps},
};

}  // namespace

std::vector<std::string> ViewNames() {
  std::vector<std::string> names;
  for (const View& view : kViews) names.emplace_back(view.name);
  return names;
}

std::string ViewsText(const v1::DeviceReport& device, const v1::Breakdown& breakdown,
                      std::span<const std::string> views, const ViewOptions& options) {
  Writer writer(device, breakdown, options);
  for (const std::string& name : views) {
    for (const View& view : kViews) {
      if (view.name == name) (writer.*view.write)();
    }
  }
  return writer.Take();
}

std::string FoldedStacks(const v1::Views& views) {
  std::string text;
  for (const v1::StackRow& row : views.stacks()) {
    std::string line = row.of_forward() ? "backward" : "";
    for (const std::string& frame : row.frames()) {
      std::string printable = Printable(frame);
      std::replace(printable.begin(), printable.end(), ';', ':');
      line += (line.empty() ? "" : ";") + printable;
    }
    text += fmt::format("{} {}\n", line.empty() ? "(no Python frame)" : line, row.bytes());
  }
  return text;
}

}  // namespace vramtrace::report
