#include <fmt/format.h>

#include <algorithm>

#include "analyzer/report/forecast.h"
#include "analyzer/report/table.h"
#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 14;
constexpr int kCandidates = 3;

std::string Fact(std::string_view what, std::string_view text) {
  return fmt::format("  {:<11} {}\n", what, Wrap(text, kWidth, kIndent));
}

std::string CandidateText(const v1::Candidate& candidate) {
  std::string names;
  std::string settings;
  for (const v1::Setting& setting : candidate.settings()) {
    names += (names.empty() ? "" : " + ") + setting.technique();
    settings += (settings.empty() ? "" : "; ") + setting.pytorch();
  }
  std::string price;
  if (candidate.slower_high() > 0.005) {
    price = fmt::format(", {:.0f} to {:.0f} % slower", 100 * candidate.slower_low(),
                        100 * candidate.slower_high());
  }
  for (const std::string& change : candidate.training()) price += ", " + change;
  return fmt::format("{}: {} used{}: {}", names, Size(candidate.prediction().used()), price, settings);
}

std::string SmallestCard(const v1::Forecast& forecast) {
  const auto fits = std::find_if(forecast.cards().begin(), forecast.cards().end(),
                                 [](const v1::CardFit& row) { return row.verdict() == "fits"; });
  if (fits == forecast.cards().end()) return "no card of the catalogue holds it";
  return fmt::format("{} ({}) is the smallest that holds it", fits->card().id(), Size(fits->card().total()));
}

}  // namespace

std::string AdviceText(const v1::Forecast& forecast) {
  if (!forecast.has_prediction()) return {};
  const v1::Prediction& asked = forecast.prediction();
  const bool fits = asked.verdict() == "fits";
  std::string text = fits ? "What leaves more room\n" : "What would make it fit\n";
  if (forecast.has_largest_batch() && forecast.largest_batch() != asked.batch()) {
    text +=
        Fact("batch", forecast.largest_unlimited() ? "no limit found"
                                                   : fmt::format("{} is the largest that fits; recorded {}",
                                                                 forecast.largest_batch(), asked.batch()));
  } else if (!forecast.has_largest_batch() && asked.batch() > 0) {
    text += Fact("batch", "not even batch 1 fits");
  }
  for (int i = 0; i < std::min(kCandidates, forecast.fitting_size()); ++i) {
    text += Fact(i == 0 ? "technique" : "or", CandidateText(forecast.fitting(i)));
  }
  if (!fits) text += Fact("card", SmallestCard(forecast));
  text += Fact("more", fmt::format("vramtrace forecast {}", symbolize::Printable(forecast.traces(0))));
  return text;
}

}  // namespace vramtrace::report
