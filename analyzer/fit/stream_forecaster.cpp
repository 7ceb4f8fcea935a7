#include "analyzer/fit/stream_forecaster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/forecast/build_stream.h"

namespace vramtrace::fit {

std::string StreamForecaster::Learn(const Recording& smaller, const Recording& larger) {
  streams_.clear();
  for (const Recording* recording : {&smaller, &larger}) {
    if (recording->run.trace.empty()) return "no trace was written";
    auto stream = forecast::BuildStream(recording->run.trace, {.device = {}, .batch = recording->value});
    if (!stream.ok()) return stream.error().message;
    streams_.push_back(std::move(stream.value()));
  }
  auto planner = forecast::Planner::Make(streams_);
  if (!planner.ok()) return planner.error().message;
  planner_ = planner.value();
  const auto options = forecast::OptionsOf(streams_[0].facts);
  if (!options.ok()) return options.error().message;
  options_ = options.value();
  const forecast::Stream copy = streams_[0];
  forecast::SetLawsByTwo(&streams_[0], streams_[1]);
  forecast::SetLawsByTwo(&streams_[1], copy);
  return "";
}

std::string StreamForecaster::Basis() const {
  std::string text = fmt::format("from {} and {}", streams_[0].batch, streams_[1].batch);
  constexpr double kMatched = 0.995;
  const double share = planner_->alignment().share();
  if (share < kMatched) {
    text += fmt::format(", of which {:.1f} % of the bytes correspond", 100 * share);
  }
  if (streams_[0].facts.lost_events || streams_[1].facts.lost_events) text += ", with events lost";
  if (streams_[0].facts.steps < 2) text += ", without two whole optimizer steps";
  return text;
}

bool StreamForecaster::FollowsValue() const {
  return std::any_of(streams_[1].requests.begin(), streams_[1].requests.end(),
                     [](const auto& request) { return request.law.slope != 0 || request.law.square != 0; });
}

const forecast::Stream& StreamForecaster::NearestTo(uint64_t value) const {
  const auto middle = static_cast<double>(streams_[0].batch) * static_cast<double>(streams_[1].batch);
  return static_cast<double>(value) * static_cast<double>(value) < middle ? streams_[0] : streams_[1];
}

forecast::Card StreamForecaster::CardOf(const Target& target) const {
  forecast::Card card = forecast::CatalogueCard(*target.gpu, streams_[1].facts);
  card.total = target.total;
  return card;
}

bool StreamForecaster::Fits(uint64_t value, const Target& target) {
  forecast::ReplayOptions options = options_;
  const forecast::Card card = CardOf(target);
  options.total = card.total;
  options.elsewhere = card.elsewhere;
  return !forecast::Replay(forecast::AtBatch(NearestTo(value), value), options).failure.has_value();
}

Forecast StreamForecaster::At(uint64_t value, const Target& target) {
  const forecast::Prediction& prediction = planner_->Predict(value, {});
  const forecast::Card card = CardOf(target);
  return {.allocated = prediction.outcome.allocated.bytes,
          .reserved = prediction.outcome.reserved.bytes,
          .elsewhere = card.elsewhere,
          .judgement = planner_->JudgeOn(prediction, card)};
}

std::string PeakForecaster::Learn(const Recording& smaller, const Recording& larger) {
  if (smaller.run.peak_used == 0 || larger.run.peak_used == 0) return "the program did not use the GPU";
  const auto beyond = [](const RunResult& run) {
    return static_cast<double>(run.peak_used) - static_cast<double>(run.context);
  };
  slope_ = (beyond(larger.run) - beyond(smaller.run)) / static_cast<double>(larger.value - smaller.value);
  fixed_ = beyond(larger.run) - slope_ * static_cast<double>(larger.value);
  return "";
}

std::string PeakForecaster::Basis() const { return "from the peaks of two runs, on a straight line"; }

Bytes PeakForecaster::Beyond(uint64_t value) const {
  return static_cast<Bytes>(std::max(0.0, std::round(fixed_ + slope_ * static_cast<double>(value))));
}

bool PeakForecaster::Fits(uint64_t value, const Target& target) {
  return Beyond(value) + catalogue::ContextOf(*target.gpu).bytes <= target.total;
}

Forecast PeakForecaster::At(uint64_t value, const Target& target) {
  Forecast forecast;
  forecast.elsewhere = catalogue::ContextOf(*target.gpu).bytes;
  // A straight line through two peaks is no better than a recording at batch 1.
  forecast::Evidence evidence;
  evidence.basis = forecast::Basis::kOneSample;
  const forecast::Band band = forecast::BandOf(evidence);
  forecast::Judgement& judgement = forecast.judgement;
  const auto used = static_cast<double>(Beyond(value));
  const auto elsewhere = static_cast<double>(forecast.elsewhere);
  judgement.expected = static_cast<Bytes>(used + elsewhere);
  judgement.low = static_cast<Bytes>(used * (1 + band.reserved_low) +
                                     std::max(0.0, elsewhere + static_cast<double>(band.elsewhere_low)));
  judgement.high = static_cast<Bytes>(used * (1 + band.reserved_high) + elsewhere +
                                      static_cast<double>(band.elsewhere_high));
  judgement.margin = static_cast<int64_t>(target.total) - static_cast<int64_t>(judgement.high);
  judgement.verdict = judgement.high <= target.total ? forecast::Verdict::kFits
                      : judgement.low > target.total ? forecast::Verdict::kDoesNotFit
                                                     : forecast::Verdict::kNear;
  judgement.probability =
      forecast::ProbabilityThatFits(judgement.low, judgement.expected, judgement.high, target.total);
  return forecast;
}

}  // namespace vramtrace::fit
