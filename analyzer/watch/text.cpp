#include "analyzer/watch/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzer/report/units.h"

namespace vramtrace::watch {
namespace {

using report::Size;

std::string CardText(const CardSample& card) {
  std::string text = fmt::format("GPU {} {} of {}", card.index, Size(card.used), Size(card.total));
  if (card.total > 0)
    text +=
        fmt::format(" ({:.0f} %)", 100.0 * static_cast<double>(card.used) / static_cast<double>(card.total));
  if (card.utilization) {
    text += fmt::format(", {} % busy, memory busy {} %", card.utilization->gpu, card.utilization->memory);
  }
  if (card.throttle && (*card.throttle & nvml::kThermal) != 0) text += ", throttled by heat";
  return text;
}

std::string ClassesText(const LiveClasses& classes) {
  if (classes.weights + classes.gradients + classes.optimizer == 0) return "";
  return fmt::format("weights {}, gradients {}, optimizer {}, other {}", Size(classes.weights),
                     Size(classes.gradients), Size(classes.optimizer), Size(classes.other));
}

std::string StepsText(const Moment& moment) {
  if (moment.facts == nullptr || moment.facts->steps().empty()) return "no step yet";
  const StepTime& last = moment.facts->steps().back();
  std::string text = fmt::format("step {} {}", moment.facts->completed(), Duration(last.seconds));
  if (moment.facts->loader().seen) text += fmt::format(", data {}", Duration(last.data));
  if (moment.facts->retries() > 0) text += fmt::format(", {} retries", moment.facts->retries());
  return text;
}

std::string Bar(const CardSample& card, size_t width) {
  const double share = card.total == 0 ? 0 : static_cast<double>(card.used) / static_cast<double>(card.total);
  const auto filled = static_cast<size_t>(std::lround(std::min(1.0, share) * static_cast<double>(width)));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

void AddRow(std::string* text, const Decided& row) {
  const Finding& finding = row.finding;
  const std::string state = finding.state == State::kFound
                                ? fmt::format("found, {} confidence", ConfidenceText(finding.confidence))
                            : finding.state == State::kUnknown ? "cannot know"
                            : finding.state == State::kNumbers ? "numbers, no verdict"
                                                               : "not there";
  *text += fmt::format("  {}: {}\n", row.symptom->title, state);
  if (!finding.sentence.empty()) *text += fmt::format("    {}\n", finding.sentence);
  for (const std::string& advice : finding.advice) *text += fmt::format("    do: {}\n", advice);
  for (const std::string& needs : finding.needs) *text += fmt::format("    would need: {}\n", needs);
}

}  // namespace

std::string Line(const Moment& moment, const Plan& plan) {
  std::string line = fmt::format("{:>6} ", Duration(moment.elapsed));
  for (const CardSample& card : moment.cards) line += " " + CardText(card) + ";";
  if (moment.cards.empty()) line += " no card in use yet;";
  line += " " + StepsText(moment);
  if (moment.facts != nullptr) {
    const std::string classes = ClassesText(moment.facts->classes());
    if (!classes.empty()) line += "; " + classes;
  }
  const std::string progress = ProgressText(moment.progress, plan);
  return progress.empty() ? line : line + "; " + progress;
}

std::string Block(const Moment& moment, const Plan& plan, size_t columns) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("vramtrace watch, {}", Duration(moment.elapsed)));
  for (const CardSample& card : moment.cards) {
    lines.push_back(fmt::format("{} {}", Bar(card, 24), CardText(card)));
    std::string physical;
    if (card.celsius) physical += fmt::format("{} C  ", *card.celsius);
    if (card.watts) physical += fmt::format("{:.0f} W  ", *card.watts);
    if (card.clock) physical += fmt::format("{} MHz", *card.clock);
    if (!physical.empty()) lines.push_back("  " + physical);
  }
  if (!moment.why_no_nvml.empty()) lines.push_back("  no utilisation: " + moment.why_no_nvml);
  lines.push_back("  " + StepsText(moment));
  if (moment.facts != nullptr) {
    const std::string classes = ClassesText(moment.facts->classes());
    if (!classes.empty()) lines.push_back("  " + classes);
  }
  const std::string progress = ProgressText(moment.progress, plan);
  if (!progress.empty()) lines.push_back("  " + progress);
  std::string text;
  for (std::string& line : lines) {
    if (line.size() > columns) line.resize(columns);
    text += line + "\n";
  }
  return text;
}

std::string Diagnosis(const Ended& ended, const Plan& plan, bool explain) {
  std::string text = "Why it was slow\n";
  const StepEvidence& steps = ended.evidence.steps;
  if (steps.counted > 0) {
    text += fmt::format("  {} steps, {} each (median {}; the first {} are not counted)\n", steps.completed,
                        Duration(steps.mean), Duration(steps.median), kWarmUpSteps);
  }
  size_t found = 0;
  for (const Decided& row : ended.decided) {
    const bool shown = row.finding.state == State::kFound || row.finding.state == State::kNumbers;
    found += row.finding.state == State::kFound ? 1 : 0;
    if (shown || explain) AddRow(&text, row);
  }
  if (found == 0) text += "  nothing that these rules know\n";
  if (!explain) {
    std::string unknown;
    for (const Decided& row : ended.decided) {
      if (row.finding.state != State::kUnknown) continue;
      unknown += fmt::format("  {}: {}\n", row.symptom->title,
                             row.finding.needs.empty() ? "" : row.finding.needs[0]);
    }
    if (!unknown.empty()) text += "Could not be told, and what it would need\n" + unknown;
  }
  if (!ended.rules.empty()) text += "What people say, and when it holds\n";
  for (const RuleOfThumb& rule : ended.rules)
    text += fmt::format("  \"{}\"\n    {}\n", rule.claim, rule.answer);
  const std::string progress = ProgressText(ended.progress, plan);
  if (!progress.empty()) text += progress + "\n";
  return text;
}

nlohmann::ordered_json Json(const Ended& ended, const Plan& plan) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Decided& row : ended.decided) {
    nlohmann::ordered_json item = {{"key", row.symptom->key}, {"state", StateText(row.finding.state)}};
    if (row.finding.state == State::kFound) item["confidence"] = ConfidenceText(row.finding.confidence);
    item["sentence"] = row.finding.sentence;
    item["advice"] = row.finding.advice;
    item["needs"] = row.finding.needs;
    rows.push_back(std::move(item));
  }
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const RuleOfThumb& rule : ended.rules)
    rules.push_back({{"claim", rule.claim}, {"answer", rule.answer}});
  const StepEvidence& steps = ended.evidence.steps;
  nlohmann::ordered_json json = {
      {"elapsed_s", ended.elapsed},
      {"steps",
       {{"completed", steps.completed},
        {"counted", steps.counted},
        {"mean_s", steps.mean},
        {"median_s", steps.median},
        {"data_s", steps.data},
        {"retries", steps.retries}}},
      {"symptoms", std::move(rows)},
      {"rules_of_thumb", std::move(rules)},
  };
  if (ended.progress.epoch_seconds) json["epoch_s"] = *ended.progress.epoch_seconds;
  if (ended.progress.left_seconds) json["left_s"] = *ended.progress.left_seconds;
  if (ended.progress.cost_so_far) {
    json["cost"] = {{"currency", plan.currency}, {"so_far", *ended.progress.cost_so_far}};
    if (ended.progress.cost_to_come) json["cost"]["to_come"] = *ended.progress.cost_to_come;
  }
  return json;
}

std::string BillingLine(const Plan& plan) {
  return plan.price > 0 ? fmt::format("the machine still bills {:.2f} {} an hour until it is stopped",
                                      plan.price, plan.currency)
                        : std::string("a rented machine still bills until it is stopped");
}

}  // namespace vramtrace::watch
