#include "analyzer/report/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/refusal_text.h"
#include "analyzer/report/table.h"
#include "analyzer/report/units.h"
#include "analyzer/report/views_text.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using symbolize::Printable;
using enum Table::Align;

constexpr size_t kWidth = 100;

class TextWriter {
 public:
  TextWriter(const v1::Report& report, const TextOptions& options) : report_(report), options_(options) {}

  std::string Run() {
    for (const v1::DeviceReport& device : report_.devices()) {
      if (device.has_out_of_memory()) WriteRefusal(device);
    }
    WriteProgram();
    for (const v1::DeviceReport& device : report_.devices()) WriteDevice(device);
    WriteNotes();
    while (text_.ends_with("\n\n")) text_.pop_back();
    return std::move(text_);
  }

 private:
  void Line(std::string_view line) {
    text_ += line;
    text_ += '\n';
  }
  [[nodiscard]] std::string Bold(const std::string& text) const {
    return options_.color ? "\x1b[1m" + text + "\x1b[0m" : text;
  }
  [[nodiscard]] std::string Red(const std::string& text) const {
    return options_.color ? "\x1b[1;31m" + text + "\x1b[0m" : text;
  }

  // "  what      text", the text wrapped under itself.
  void Fact(std::string_view what, std::string_view text) {
    constexpr size_t kIndent = 14;
    Line(fmt::format("  {:<11} {}", what, Wrap(text, kWidth, kIndent)));
  }

  void WriteRefusal(const v1::DeviceReport& device) {
    Line(Red(Wrap(device.out_of_memory().summary(), kWidth, 2)));
    for (const v1::Fact& fact : device.out_of_memory().arithmetic()) Fact(fact.what(), fact.text());
    Line("");
  }

  void WriteProgram() {
    const v1::Program& program = report_.program();
    std::string command;
    for (const std::string& argument : program.arguments())
      command += (command.empty() ? "" : " ") + argument;
    Line(Bold("Run"));
    std::string versions;
    const auto add = [&](std::string_view name, const std::string& version) {
      if (!version.empty()) versions += fmt::format(", {} {}", name, Printable(version));
    };
    add("Python", program.python_version());
    add("PyTorch", program.torch_version());
    add("CUDA runtime", program.cuda_runtime_version());
    const std::string title = command.empty() ? "not recorded" : CutMiddle(Printable(command), 3 * kWidth);
    Fact("program", title);
    std::string process =
        program.pid() == 0 ? "process not recorded" : fmt::format("process {}{}", program.pid(), versions);
    if (program.world_size() > 1) {
      process += fmt::format(", rank {} of {}", program.rank(), program.world_size());
    }
    Fact("", process);
    Fact("steps", StepsText());
    const v1::Trace& trace = report_.trace();
    Fact("trace",
         fmt::format("{}, {} events, {}, {:.1f} s{}", Printable(trace.path()), Grouped(trace.events()),
                     Size(trace.bytes()), static_cast<double>(trace.duration_ns()) / 1e9,
                     trace.being_written() ? ", still being written" : ""));
    Line("");
  }

  [[nodiscard]] std::string StepsText() const {
    const v1::Steps& steps = report_.steps();
    std::string text = steps.completed() == 0 ? "no optimizer step completed"
                                              : fmt::format("{} optimizer steps completed, numbered from 0",
                                                            Grouped(steps.completed()));
    if (steps.completed() == 1) text = "1 optimizer step completed, number 0";
    std::string optimizers;
    for (const std::string& name : steps.optimizers())
      optimizers += (optimizers.empty() ? "" : ", ") + Printable(name);
    if (!optimizers.empty()) text += fmt::format(" ({})", optimizers);
    if (steps.batch() > 0) text += fmt::format("; batch {}", steps.batch());
    constexpr int kMost = 4;
    for (int i = 0; i < std::min(kMost, steps.inputs_size()); ++i) {
      const v1::Input& input = steps.inputs(i);
      text += fmt::format("{} {} [{}] {}", i == 0 ? ":" : ",", Printable(input.name()),
                          fmt::join(input.shape(), ", "), Printable(input.dtype()));
    }
    return text;
  }

  void WriteDevice(const v1::DeviceReport& device) {
    std::string title = fmt::format("GPU {}", device.device());
    if (!device.name().empty()) title += fmt::format(": {}", Printable(device.name()));
    if (device.total_bytes() > 0) title += fmt::format(", {}", Size(device.total_bytes()));
    if (device.simulated()) title += " (simulated)";
    Line(Bold(title));
    WritePeaks(device);
    const bool chosen = device.has_at_instant();
    const bool refused = !chosen && device.has_at_refusal();
    const v1::Breakdown& shown = chosen    ? device.at_instant()
                                 : refused ? device.at_refusal()
                                           : device.at_peak();
    if (!chosen && !refused && !device.has_at_peak()) {
      Line("  Nothing was allocated.");
      return;
    }
    Line("");
    const std::string when = chosen                           ? "at " + InstantText(device)
                             : refused                        ? "when memory ran out"
                             : device.block_allocations() > 0 ? "at the peak of allocated bytes"
                                                              : "at the peak of the device's memory";
    WriteIdentity(shown, when, refused);
    Line("");
    if (options_.views.empty()) return WriteAllocations(shown);
    const ViewOptions view{options_.color, options_.allocations};
    text_ += ViewsText(device, shown, options_.views, view);
  }

  // "step:3,backward: 12.3 MiB, step 3, backward, in h.0.mlp".
  static std::string InstantText(const v1::DeviceReport& device) {
    const v1::Breakdown& at = device.at_instant();
    return fmt::format("{} ({} allocated, {:.3f} s after the first event, {})", Printable(device.instant()),
                       Size(at.allocated()), static_cast<double>(at.moment().time_ns()) / 1e9,
                       Place(at.moment()));
  }

  void WritePeaks(const v1::DeviceReport& device) {
    Table table({kLeft, kRight, kRight, kLeft});
    const auto add = [&](std::string what, const v1::Peak& peak) {
      if (peak.bytes() == 0) return;
      table.Add({"peak " + std::move(what), Size(peak.bytes()), Grouped(peak.bytes()) + " B",
                 Place(peak.moment())});
    };
    add("allocated", device.peak_allocated());
    add("reserved", device.peak_reserved());
    if (device.has_peak_used()) add("device used", device.peak_used());
    text_ += table.Render(kWidth);
    const v1::CounterCheck& check = device.counter_check();
    if (check.comparisons() > 0 && check.differences() == 0) {
      Line(fmt::format("  PyTorch's own counters agree with the recorded events in all {} comparisons.",
                       Grouped(check.comparisons())));
    }
  }

  void WriteIdentity(const v1::Breakdown& breakdown, const std::string& when, bool refused) {
    const v1::Identity& identity = breakdown.identity();
    Line(Bold(Wrap("What filled it " + when, kWidth, 2)));
    const v1::Moment& moment = breakdown.moment();
    if (!refused) {
      if (!moment.site().empty()) Fact("where", Printable(moment.site()));
      if (!moment.script().empty() && moment.script() != moment.site()) {
        Fact("called by", Printable(moment.script()));
      }
    }
    Table table({kLeft, kRight, kRight, kRight, kLeft});
    std::vector<const v1::Term*> terms;
    for (const v1::Term& term : identity.terms()) terms.push_back(&term);
    // Classes come first, largest first; the terms around them keep their order.
    const auto is_class = [&](const v1::Term* term) { return FindClass(breakdown, term->key()) != nullptr; };
    const auto classes_end = std::stable_partition(terms.begin(), terms.end(), is_class);
    std::stable_sort(terms.begin(), classes_end,
                     [](const v1::Term* a, const v1::Term* b) { return a->bytes() > b->bytes(); });
    const auto whole = static_cast<double>(identity.device_used());
    for (const v1::Term* term : terms) {
      if (term->bytes() == 0) continue;
      table.Add({Printable(term->words()), SignedSize(term->bytes()), SignedGrouped(term->bytes()) + " B",
                 Share(static_cast<double>(term->bytes()), whole), BasisText(breakdown, *term)});
    }
    table.Add({identity.device_used_known() ? "= device used" : "= recorded in all",
               Size(identity.device_used()), Grouped(identity.device_used()) + " B", Share(whole, whole),
               identity.device_used_known() ? "recorded" : "the device was never asked"});
    text_ += table.Render(kWidth);
    if (identity.mismatch() != 0) {
      Line(Red(fmt::format("  The terms do not add up: {} B are missing. The trace contradicts itself.",
                           SignedGrouped(identity.mismatch()))));
    }
  }

  static const v1::ClassRow* FindClass(const v1::Breakdown& breakdown, const std::string& key) {
    for (const v1::ClassRow& row : breakdown.classes()) {
      if (row.key() == key) return &row;
    }
    return nullptr;
  }

  // How sure: the share of a class that weaker rules decided is said with it.
  static std::string BasisText(const v1::Breakdown& breakdown, const v1::Term& term) {
    const v1::ClassRow* row = FindClass(breakdown, term.key());
    if (row == nullptr || row->unsure_bytes() == 0 || row->key() == "unknown") return term.basis();
    constexpr double kAsGoodAsAll = 0.995;
    if (static_cast<double>(row->unsure_bytes()) >= kAsGoodAsAll * static_cast<double>(row->bytes()))
      return fmt::format("{}, class inferred", term.basis());
    return fmt::format("{}, class of {} inferred", term.basis(), Size(row->unsure_bytes()));
  }

  void WriteAllocations(const v1::Breakdown& breakdown) {
    const size_t count = std::min(options_.allocations, static_cast<size_t>(breakdown.allocations_size()));
    if (count == 0) return;
    Line(Bold(count == breakdown.allocation_count()
                  ? fmt::format("All {}", Count(count, "live allocation"))
                  : fmt::format("The {} largest of {} live allocations", count,
                                Grouped(breakdown.allocation_count()))));
    constexpr size_t kNameWidth = 38;
    constexpr size_t kFrameWidth = 30;
    Table table({kRight, kLeft, kLeft, kLeft});
    for (size_t i = 0; i < count; ++i) {
      const v1::Allocation& allocation = breakdown.allocations(static_cast<int>(i));
      const v1::ClassRow* row = FindClass(breakdown, allocation.class_());
      table.Add({Size(allocation.bytes()), row == nullptr ? allocation.class_() : row->words(),
                 CutMiddle(NameOf(allocation), kNameWidth),
                 CutEnd(Printable(ShortFrame(allocation.site())), kFrameWidth)});
    }
    text_ += table.Render(kWidth);
    Line("");
  }

  // The tensor's name, else the module's path and the running autograd node.
  static std::string NameOf(const v1::Allocation& allocation) {
    std::string text = Printable(allocation.title());
    if (allocation.names_size() > 1) return text + fmt::format(" (tied, {} names)", allocation.names_size());
    if (allocation.names_size() == 1) return text;
    if (text.empty() && allocation.has_module()) text = Printable(allocation.module_class());
    if (!allocation.operator_().empty()) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", Printable(allocation.operator_()));
    }
    return text.empty() ? "made in " + Printable(allocation.phase()) : text;
  }

  // "modeling.py:40 forward" out of "models/modeling.py:40 (Block.forward)": the table is narrow, and the
  // module's path says where in the model it is.
  static std::string ShortFrame(const std::string& frame) {
    const size_t open = frame.rfind(" (");
    if (open == std::string::npos) return frame;
    const std::string place = frame.substr(0, open);
    const std::string function = frame.substr(open + 2, frame.size() - open - 3);
    return place.substr(place.rfind('/') + 1) + " " + function.substr(function.rfind('.') + 1);
  }

  void WriteNotes() {
    if (report_.notes().empty()) return;
    Line(Bold("Notes"));
    for (const v1::Note& note : report_.notes()) {
      const std::string mark = note.severity() == "information" ? "" : note.severity() + ": ";
      Line("  " + Wrap(mark + note.text(), kWidth, 2));
    }
  }

  const v1::Report& report_;
  const TextOptions& options_;
  std::string text_;
};

}  // namespace

std::string ToText(const v1::Report& report, const TextOptions& options) {
  return TextWriter(report, options).Run();
}

}  // namespace vramtrace::report
