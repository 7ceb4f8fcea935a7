#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/forecast.h"
#include "analyzer/report/table.h"
#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using symbolize::Printable;
using enum Table::Align;

constexpr size_t kWidth = 100;

std::string Percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

class Writer {
 public:
  Writer(const v1::Forecast& forecast, const ForecastTextOptions& options)
      : forecast_(forecast), options_(options) {}

  std::string Run() {
    WriteRun();
    if (!forecast_.has_prediction()) {
      for (const v1::Refused& refused : forecast_.refused()) {
        Line(Wrap(fmt::format("{} cannot be applied: {}.", Printable(refused.technique()), refused.why()),
                  kWidth, 2));
      }
      return std::move(text_);
    }
    WritePrediction();
    WriteBatches();
    WriteCandidates();
    WriteCards();
    for (const v1::Note& note : forecast_.notes()) Line("Note: " + Wrap(note.text(), kWidth, 6));
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
  void Fact(std::string_view what, std::string_view text) {
    constexpr size_t kIndent = 14;
    Line(fmt::format("  {:<11} {}", what, Wrap(text, kWidth, kIndent)));
  }

  [[nodiscard]] std::string CardName() const {
    const v1::ForecastCard& card = forecast_.card();
    return card.id().empty() ? Size(card.total()) : card.id();
  }

  void WriteRun() {
    std::string command;
    for (const std::string& argument : forecast_.arguments())
      command += (command.empty() ? "" : " ") + argument;
    Line(Bold("Recorded"));
    Fact("program", CutMiddle(Printable(command), 2 * kWidth));
    std::string batches;
    for (const uint64_t batch : forecast_.recorded_batches()) {
      batches += fmt::format("{}{}", batches.empty() ? "batch " : " and ", batch);
    }
    Fact("", fmt::format("{}{}, {} on {}{}", batches.empty() ? "batch not known" : batches,
                         forecast_.inputs_size() > 0 ? InputText() : "", Count(forecast_.steps(), "step"),
                         Printable(forecast_.recorded_on()), forecast_.simulated() ? " (simulated)" : ""));
    const v1::Bytes& recorded = forecast_.recorded();
    Fact("replay",
         forecast_.replay_exact()
             ? fmt::format(
                   "the allocator's rules give the recorded peaks to the byte: {} allocated, {} reserved",
                   Size(recorded.allocated()), Size(recorded.reserved()))
             : fmt::format("{} allocated where {} was recorded, {} reserved where {}",
                           Size(forecast_.replayed().allocated()), Size(recorded.allocated()),
                           Size(forecast_.replayed().reserved()), Size(recorded.reserved())));
    Fact("basis", forecast_.basis_text());
    Line("");
  }

  [[nodiscard]] std::string InputText() const {
    const v1::Input& input = forecast_.inputs(0);
    return fmt::format(" ({} [{}] {})", Printable(input.name()), fmt::join(input.shape(), ", "),
                       Printable(input.dtype()));
  }

  [[nodiscard]] static std::string VerdictText(const v1::Prediction& prediction) {
    if (prediction.verdict() == "fits") {
      return prediction.under_pressure() ? "fits, once the allocator gives its cache back"
                                         : fmt::format("fits, {} left", SignedSize(prediction.margin()));
    }
    if (prediction.verdict() == "near")
      return fmt::format("may not fit: P(fits) {}", Percent(prediction.probability()));
    if (prediction.verdict() == "does_not_fit")
      return fmt::format("does not fit: {} short", Size(static_cast<uint64_t>(-prediction.margin())));
    if (prediction.verdict() == "unknown") return "not known";
    return "";
  }

  void WritePrediction() {
    const v1::Prediction& asked = forecast_.prediction();
    std::string title = asked.batch() == 0 ? "Forecast" : fmt::format("Forecast: batch {}", asked.batch());
    for (const std::string& technique : asked.techniques()) title += ", " + Printable(technique);
    if (forecast_.card().total() > 0) {
      title += fmt::format(" on {} ({})", CardName(), Size(forecast_.card().total()));
    }
    Line(Bold(title));
    if (asked.verdict() == "unknown") {
      Fact("verdict", "not known: the trace does not hold a whole step (see the note)");
    } else if (!asked.verdict().empty()) {
      Fact("verdict", VerdictText(asked));
    }
    Fact("device used", fmt::format("{}, at least {}, at most {}", Size(asked.used()), Size(asked.used_low()),
                                    Size(asked.used_high())));
    Fact("of it",
         fmt::format("{} allocated by tensors, {} reserved by PyTorch, {} context and libraries ({})",
                     Size(asked.allocated()), Size(asked.reserved()), Size(forecast_.card().elsewhere()),
                     forecast_.card().elsewhere_basis()));
    if (asked.orders_tried() > 0) {
      Fact("orders",
           fmt::format("steps differ in size: reserved lies between {} and {} over {} orders of them; "
                       "the verdict is of the highest",
                       Size(asked.reserved_lowest()), Size(asked.reserved_highest()), asked.orders_tried()));
    }
    std::string place = asked.phase();
    if (!asked.module_path().empty()) place += ", " + Printable(asked.module_path());
    if (!asked.site().empty()) place += ", " + Printable(asked.site());
    Fact("peak in", place);
    std::string classes;
    constexpr int kMost = 5;
    for (int i = 0; i < std::min(kMost, asked.classes_size()); ++i) {
      classes += fmt::format("{}{} {}", i == 0 ? "" : ", ", asked.classes(i).words(),
                             Size(asked.classes(i).bytes()));
    }
    Fact("made of", classes);
    Line("");
  }

  void WriteBatches() {
    if (forecast_.batches_size() == 0) return;
    if (forecast_.whole() && forecast_.card().total() > 0) {
      const std::string answer = !forecast_.has_largest_batch() ? "none, not even batch 1"
                                 : forecast_.largest_unlimited()
                                     ? "no limit found"
                                     : fmt::format("{}", forecast_.largest_batch());
      Line(Bold(fmt::format("Largest batch that fits {}: {}", CardName(), answer)));
    }
    Table table({kRight, kRight, kRight, kRight, kRight, kLeft});
    table.Add({"batch", "allocated", "reserved", "device used", "at most", ""});
    for (const v1::Prediction& row : forecast_.batches()) {
      table.Add({fmt::format("{}", row.batch()), Size(row.allocated()), Size(row.reserved()),
                 Size(row.used()), Size(row.used_high()), VerdictText(row)});
    }
    text_ += table.Render(kWidth);
    Line("");
  }

  [[nodiscard]] static std::string PriceText(const v1::Candidate& candidate) {
    std::string text;
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
    if (candidate.slower_high() > 0.005) {
      add(fmt::format("{:.0f} to {:.0f} % slower", 100 * candidate.slower_low(),
                      100 * candidate.slower_high()));
    }
    for (const std::string& change : candidate.training()) add(change);
    if (candidate.price() == "more_cards") add("needs more cards");
    return text.empty() ? "costs nothing" : text;
  }

  [[nodiscard]] static std::string Names(const v1::Candidate& candidate) {
    std::string names;
    for (const v1::Setting& setting : candidate.settings()) {
      names += (names.empty() ? "" : " + ") + setting.technique();
    }
    return names;
  }

  void WriteCandidates() {
    if (forecast_.fitting_size() > 0) {
      Line(Bold(fmt::format("What {} {}, the cheapest first",
                            forecast_.prediction().verdict() == "fits" ? "saves more on" : "makes it fit",
                            CardName())));
      int shown = 0;
      for (const v1::Candidate& candidate : forecast_.fitting()) {
        if (shown++ == static_cast<int>(options_.candidates)) break;
        WriteCandidate(candidate, shown);
      }
      const int rest = forecast_.fitting_size() - static_cast<int>(options_.candidates);
      if (rest > 0) Line(fmt::format("  and {} more (--top)", rest));
      Line("");
    } else if (forecast_.whole() && forecast_.prediction().verdict() != "fits" &&
               forecast_.card().total() > 0) {
      Line(fmt::format("Nothing known here makes it fit {}, alone or in a pair.", CardName()));
      Line("");
    }
    WriteInsufficient();
  }

  void WriteCandidate(const v1::Candidate& candidate, int number) {
    const v1::Prediction& prediction = candidate.prediction();
    Line(fmt::format("  {}. {}: {} used, saves {}; {}", number, Names(candidate), Size(prediction.used()),
                     SignedSize(candidate.saves()), PriceText(candidate)));
    constexpr size_t kIndent = 7;
    for (const v1::Setting& setting : candidate.settings()) {
      Line("     " + Wrap(fmt::format("{}{}", setting.pytorch(),
                                      setting.transformers().empty()
                                          ? ""
                                          : fmt::format("; transformers: {}", setting.transformers())),
                          kWidth, kIndent));
    }
    std::string peak = fmt::format("the peak is then in {}", prediction.phase());
    if (!prediction.module_path().empty()) peak += ", " + Printable(prediction.module_path());
    Line("     " + Wrap(fmt::format("{} ({} allocated); {}", peak, Size(prediction.allocated()),
                                    VerdictText(prediction)),
                        kWidth, kIndent));
  }

  void WriteInsufficient() {
    if (forecast_.prediction().verdict() == "fits" || forecast_.card().total() == 0) return;
    const auto list = [&](const auto& rows, std::string_view title, bool most) {
      if (rows.empty()) return;
      std::string names;
      int shown = 0;
      for (const v1::Candidate& row : rows) {
        if (shown++ == static_cast<int>(options_.candidates)) break;
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", Names(row),
                             most ? "at most " + Size(row.saves_most()) : "saves " + SignedSize(row.saves()));
      }
      Line(Wrap(fmt::format("{}: {}.", title, names), kWidth, 2));
    };
    list(forecast_.falling_short(), "Not enough alone", false);
    list(forecast_.useless(), "Useless here, less than what is missing", true);
    Line("");
  }

  void WriteCards() {
    if (forecast_.cards_size() == 0) return;
    Line(Bold("Cards that hold it"));
    Table table({kLeft, kRight, kLeft, kRight});
    table.Add({"card", "memory", "", "largest batch"});
    int shown = 0;
    int small = 0;
    for (const v1::CardFit& row : forecast_.cards()) {
      if (row.verdict() == "does_not_fit" && !options_.all_cards) {
        ++small;
        continue;
      }
      constexpr int kMost = 10;
      if (!options_.all_cards && ++shown > kMost) break;
      const std::string largest = !row.has_largest_batch()  ? "-"
                                  : row.largest_unlimited() ? "no limit"
                                                            : fmt::format("{}", row.largest_batch());
      const std::string verdict =
          row.verdict() == "fits"      ? fmt::format("fits, {} left", SignedSize(row.margin()))
          : row.verdict() == "near"    ? "may not fit"
          : row.verdict() == "unknown" ? "not known"
                                       : fmt::format("{} short", Size(static_cast<uint64_t>(-row.margin())));
      table.Add({row.card().id(), Size(row.card().total()), verdict, largest});
    }
    text_ += table.Render(kWidth);
    if (small > 0)
      Line(fmt::format("  {} of the catalogue too small (--all-cards lists them)",
                       Count(static_cast<uint64_t>(small), "card")));
    Line("");
  }

  const v1::Forecast& forecast_;
  const ForecastTextOptions& options_;
  std::string text_;
};

}  // namespace

std::string ForecastText(const v1::Forecast& forecast, const ForecastTextOptions& options) {
  return Writer(forecast, options).Run();
}

}  // namespace vramtrace::report
