#pragma once
// A forecast as the one message, and as text.

#include <optional>
#include <string>
#include <vector>

#include "analyzer/forecast/planner.h"
#include "analyzer/report/report.pb.h"

namespace vramtrace::report {

struct ForecastQuestion {
  std::optional<forecast::Card> card;  // without one, the card that the run was recorded on
  uint64_t batch = 0;                  // 0: the recorded one
  std::vector<forecast::Chosen> techniques;
  bool cards = true;  // judge every card of the catalogue
};

// Asks `planner` everything that a forecast shows. The message's `prediction` is not set where a technique of
// the question cannot be applied; `refused` then says why.
[[nodiscard]] v1::Forecast MakeForecast(forecast::Planner& planner, const std::vector<std::string>& traces,
                                        const ForecastQuestion& question);

struct ForecastTextOptions {
  bool color = false;
  size_t candidates = 8;  // of each kind to list
  bool all_cards = false;
};

// A few lines below a report: the largest batch, the cheapest techniques, the smallest card.
[[nodiscard]] std::string AdviceText(const v1::Forecast& forecast);

[[nodiscard]] std::string ForecastText(const v1::Forecast& forecast, const ForecastTextOptions& options);

}  // namespace vramtrace::report
