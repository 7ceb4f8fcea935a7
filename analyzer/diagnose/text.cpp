#include <fmt/format.h>

#include "analyzer/diagnose/diagnose.h"
#include "analyzer/report/table.h"
#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::diagnose {
namespace {

using symbolize::Printable;

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 14;

std::string Fact(std::string_view what, std::string_view text) {
  return fmt::format("  {:<11} {}\n", what, report::Wrap(Printable(std::string(text)), kWidth, kIndent));
}

std::string RemedyText(const report::v1::Remedy& remedy) {
  std::string text = remedy.change();
  if (remedy.used() > 0) {
    text += fmt::format(": then {} used, {} to {}", report::Size(remedy.used()),
                        report::Size(remedy.used_low()), report::Size(remedy.used_high()));
  } else if (remedy.saves_most() > 0) {
    text += fmt::format(": at most {} less", report::Size(remedy.saves_most()));
  }
  return text;
}

std::string Detail(const report::v1::Diagnosis& diagnosis, bool explain) {
  std::string text;
  for (const report::v1::Fact& number : diagnosis.numbers())
    text += Fact("", number.what() + ": " + number.text());
  if (diagnosis.state() == "found") {
    for (const std::string& missing : diagnosis.missing()) text += Fact("", "not sure: " + missing);
    for (int i = 0; i < diagnosis.remedies_size(); ++i)
      text += Fact(i == 0 ? "change" : "or", RemedyText(diagnosis.remedies(i)));
    for (const std::string& why : diagnosis.cannot()) text += Fact("not", why);
  }
  if (!explain) return text;
  text += Fact("looks for", diagnosis.signature());
  text += Fact("needs", diagnosis.needs());
  text += Fact("confidence", diagnosis.confidence_rule());
  text += Fact("limits", diagnosis.limits());
  return text;
}

std::string Heading(const report::v1::Diagnosis& diagnosis) {
  if (diagnosis.state() == "found")
    return fmt::format("{} ({} confidence)", diagnosis.title(), diagnosis.confidence());
  if (diagnosis.state() == "too_little")
    return diagnosis.title() + " (numbers only: too little for a verdict)";
  if (diagnosis.state() == "not_recorded")
    return diagnosis.title() + " (not checked: traces do not hold what it needs)";
  return diagnosis.title() + " (not found)";
}

}  // namespace

std::string Text(const report::v1::Report& report, const TextOptions& options) {
  std::string text;
  const auto bold = [&](const std::string& line) {
    return options.color ? "\x1b[1m" + line + "\x1b[0m" : line;
  };
  for (const report::v1::DeviceDiagnoses& device : report.diagnoses()) {
    std::string shown;
    for (const report::v1::Diagnosis& diagnosis : device.diagnoses()) {
      if (!diagnosis.shown() && !options.explain) continue;
      shown += fmt::format(
          "  {:<11} {}\n", diagnosis.shown() ? report::Size(diagnosis.own_bytes()) : diagnosis.id(),
          report::Wrap(
              fmt::format("{} {}", diagnosis.shown() ? diagnosis.id() + ":" : "-", Heading(diagnosis)),
              kWidth, kIndent));
      if (diagnosis.state() == "found") shown += Fact("", diagnosis.sentence());
      shown += Detail(diagnosis, options.explain);
    }
    if (shown.empty()) continue;
    const std::string where = report.diagnoses_size() > 1 ? fmt::format(" on GPU {}", device.device()) : "";
    text += bold(fmt::format("Diagnosis{}", where)) + "\n" + shown;
    text += fmt::format("  {:<11} the rest; together {} device used {}\n", report::Size(device.rest()),
                        report::Size(device.used()),
                        device.at() == "refusal" ? "when memory ran out" : "at the peak");
  }
  return text;
}

}  // namespace vramtrace::diagnose
