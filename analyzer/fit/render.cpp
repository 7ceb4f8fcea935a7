#include "analyzer/fit/render.h"

#include <fmt/format.h>

#include <cmath>

#include "analyzer/report/units.h"

namespace vramtrace::fit {
namespace {

using nlohmann::json;
using report::SignedSize;
using report::Size;

std::string Percent(double probability) {
  if (probability > 0.99) return "over 99 %";
  if (probability < 0.01) return "under 1 %";
  return fmt::format("{:.0f} %", 100 * probability);
}

std::string Row(std::string_view name, const std::string& text) {
  return fmt::format("  {:<18}{}\n", name, text);
}

std::string Difference(Bytes real, Bytes forecast) {
  if (forecast == 0) return "";
  const double share = static_cast<double>(real) / static_cast<double>(forecast) - 1;
  return std::abs(share) < 0.00005 ? " (exact)" : fmt::format(" ({:+.2f} %)", 100 * share);
}

// "allocated 20.11 GiB, reserved 21.90 GiB, device used 22.31 GiB (0.42 GiB the context)"
std::string PeaksOf(const RunResult& run) {
  std::string text;
  if (run.peak_allocated != 0) {
    text = fmt::format("allocated {}, reserved {}, ", Size(run.peak_allocated), Size(run.peak_reserved));
  }
  return text + fmt::format("device used {} ({} the context)", Size(run.peak_used), Size(run.context));
}

class CardText {
 public:
  CardText(const FitReport& report, const CardAnswer& answer) : report_(report), answer_(answer) {}

  std::string Make() {
    const catalogue::Gpu& gpu = *answer_.target.gpu;
    text_ =
        fmt::format("{} ({}, {})\n", gpu.device_name, Size(answer_.target.total), answer_.target.total_basis);
    Largest();
    if (answer_.largest) AtLargest(*answer_.largest);
    if (answer_.above) Above(*answer_.above);
    RealCard();
    for (const std::string& note : answer_.notes) text_ += Row("note", note);
    return text_;
  }

 private:
  void Largest() {
    const std::string name = fmt::format("largest {}", report_.placeholder);
    const std::string forecast = answer_.forecast_largest
                                     ? fmt::format("forecast {}", *answer_.forecast_largest)
                                     : std::string("forecast: none fits");
    switch (answer_.kind) {
      case CardAnswer::Kind::kProved:
        text_ +=
            Row(name, fmt::format("{}  proved by dry runs: {} fits, {} does not ({})", answer_.largest->value,
                                  answer_.largest->value, answer_.above->value, forecast));
        break;
      case CardAnswer::Kind::kEverythingFits:
        text_ += Row(name, fmt::format("{}  which fits, and no larger one is allowed or accepted",
                                       answer_.largest->value));
        break;
      case CardAnswer::Kind::kNothingFits:
        text_ += Row(name, fmt::format("none: not even {} fits, proved by a dry run", answer_.above->value));
        break;
      case CardAnswer::Kind::kNotProved:
        text_ +=
            Row(name, fmt::format("not proved ({}{})", forecast,
                                  answer_.largest ? fmt::format("; {} fits", answer_.largest->value) : ""));
        break;
    }
  }

  void AtLargest(const Measured& measured) {
    text_ += Row(fmt::format("at {}", measured.value), PeaksOf(measured.run));
    if (!measured.forecast) return;
    const Forecast& forecast = *measured.forecast;
    if (measured.run.peak_allocated != 0 && forecast.allocated != 0) {
      text_ += Row(
          "forecast was",
          fmt::format("allocated {}{}, reserved {} without a limit{}", Size(forecast.allocated),
                      Difference(measured.run.peak_allocated, forecast.allocated), Size(forecast.reserved),
                      Difference(measured.run.peak_reserved, forecast.reserved)));
    }
    text_ += Row("stays free", SignedSize(static_cast<int64_t>(answer_.target.total) -
                                          static_cast<int64_t>(measured.run.peak_used)));
  }

  void Above(const Measured& measured) {
    std::string text;
    if (measured.forecast) {
      const auto needs = measured.forecast->judgement.expected;
      text = fmt::format(
          "{} of device used ({} than the card has); ", Size(needs),
          needs > answer_.target.total
              ? Size(needs - answer_.target.total) + " more"
              : "less, but in pieces that do not fit: " + Size(answer_.target.total - needs) + " less");
    }
    text_ += Row(fmt::format("{} would need", measured.value),
                 text + fmt::format("the dry run was refused {}", Size(measured.run.largest_refused)));
  }

  void RealCard() {
    if (!answer_.largest || !answer_.largest->forecast) return;
    const forecast::Judgement& judgement = answer_.largest->forecast->judgement;
    if (answer_.safe == answer_.largest->value) {
      text_ += Row("on a real card",
                   fmt::format("{} fits with room for what a card may need beyond a dry run", *answer_.safe));
      return;
    }
    text_ +=
        Row("on a real card",
            fmt::format("{} fits with a probability of {}; {}", answer_.largest->value,
                        Percent(judgement.probability),
                        answer_.safe ? fmt::format("take {}, which leaves room for what a card may need "
                                                   "beyond a dry run",
                                                   *answer_.safe)
                                     : std::string("no value leaves room for what a card may need beyond "
                                                   "a dry run")));
  }

  const FitReport& report_;
  const CardAnswer& answer_;
  std::string text_;
};

std::string ProblemText(const Problem& problem) {
  std::string text = problem.words + "\n";
  if (problem.last_lines.empty()) return text;
  text += "the program's last lines:\n";
  for (const std::string& line : problem.last_lines) text += "  | " + line + "\n";
  return text;
}

constexpr std::string_view kEnds[] = {"completed", "out of memory", "failed",     "timed out",
                                      "stopped",   "interrupted",   "not started"};
constexpr std::string_view kKinds[] = {"proved", "everything fits", "nothing fits", "not proved"};
constexpr std::string_view kProblems[] = {"program failed", "no gpu used", "value not followed", "timed out",
                                          "stopped",        "interrupted", "not started"};
constexpr std::string_view kVerdicts[] = {"fits", "near the edge", "does not fit"};

json JsonOf(const RunResult& run) {
  return {{"end", kEnds[static_cast<size_t>(run.end)]},
          {"exit_code", run.exit_code},
          {"peak_allocated", run.peak_allocated},
          {"peak_reserved", run.peak_reserved},
          {"peak_used", run.peak_used},
          {"context", run.context},
          {"total", run.total},
          {"largest_refused", run.largest_refused},
          {"steps", run.steps}};
}

json JsonOf(const Measured& measured) {
  json object = {{"value", measured.value}, {"run", JsonOf(measured.run)}};
  if (measured.forecast) {
    const forecast::Judgement& judgement = measured.forecast->judgement;
    object["forecast"] = {{"allocated", measured.forecast->allocated},
                          {"reserved", measured.forecast->reserved},
                          {"elsewhere", measured.forecast->elsewhere},
                          {"used", judgement.expected},
                          {"used_low", judgement.low},
                          {"used_high", judgement.high},
                          {"margin", judgement.margin},
                          {"verdict", kVerdicts[static_cast<size_t>(judgement.verdict)]},
                          {"probability", judgement.probability}};
  }
  return object;
}

json JsonOf(const CardAnswer& answer) {
  json object = {{"gpu", answer.target.gpu->id},
                 {"device_name", answer.target.gpu->device_name},
                 {"total", answer.target.total},
                 {"total_basis", answer.target.total_basis},
                 {"kind", kKinds[static_cast<size_t>(answer.kind)]},
                 {"monotone", answer.monotone},
                 {"contradicted", answer.contradicted},
                 {"notes", answer.notes}};
  if (answer.largest) object["largest"] = JsonOf(*answer.largest);
  if (answer.above) object["above"] = JsonOf(*answer.above);
  if (answer.forecast_largest) object["forecast_largest"] = *answer.forecast_largest;
  if (answer.safe) object["safe"] = *answer.safe;
  return object;
}

}  // namespace

std::string TextOf(const FitReport& report) {
  std::string text;
  for (const CardAnswer& answer : report.cards) text += CardText(report, answer).Make();
  for (const std::string& basis : report.basis) text += fmt::format("forecast {}\n", basis);
  if (report.step > 1) {
    text += fmt::format("the program takes multiples of {}, as far as was tried\n", report.step);
  }
  for (const std::string& note : report.notes) text += note + "\n";
  if (report.problem) text += ProblemText(*report.problem);
  return text;
}

json JsonOf(const FitReport& report) {
  json object = {{"format", "vramtrace-fit"}, {"version", 1},
                 {"command", report.command}, {"placeholder", report.placeholder},
                 {"step", report.step},       {"deterministic", report.deterministic},
                 {"basis", report.basis},     {"notes", report.notes},
                 {"cards", json::array()},    {"runs", json::array()}};
  for (const CardAnswer& answer : report.cards) object["cards"].push_back(JsonOf(answer));
  for (const Trial& trial : report.trials) {
    json run = JsonOf(trial.run);
    run["value"] = trial.value;
    run["gpu"] = trial.gpu;
    run["unlimited"] = trial.unlimited;
    object["runs"].push_back(std::move(run));
  }
  if (report.problem) {
    object["problem"] = {{"kind", kProblems[static_cast<size_t>(report.problem->kind)]},
                         {"words", report.problem->words},
                         {"last_lines", report.problem->last_lines},
                         {"exit_code", report.problem->exit_code}};
  }
  return object;
}

}  // namespace vramtrace::fit
