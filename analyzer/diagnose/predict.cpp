#include "analyzer/diagnose/predict.h"

#include <fmt/format.h>

#include "analyzer/forecast/build_stream.h"
#include "analyzer/forecast/edit.h"

namespace vramtrace::diagnose {
namespace {

constexpr uint64_t kWholeSteps = 2;  // before that the run has phases that were not seen

Predicted Of(const forecast::Judgement& judgement) {
  return {judgement.expected, judgement.low, judgement.high,
          judgement.verdict != forecast::Verdict::kDoesNotFit};
}

// The stream without the requests that `without` names; how many they were.
forecast::Stream Without(const forecast::Stream& stream, const Remedy& remedy, size_t* removed) {
  forecast::Edit edit(stream);
  for (uint32_t i = 0; i < stream.requests.size(); ++i) {
    if (!remedy.without(stream, stream.requests[i])) continue;
    edit.Remove(forecast::RequestId{i});
    ++*removed;
  }
  return std::move(edit).Finish();
}

}  // namespace

forecast::Planner* Predictor::planner() {
  if (tried_) return planner_.get();
  tried_ = true;
  if (evidence_.history.completed < kWholeSteps) return nullptr;
  forecast::StreamOptions options;
  options.device = evidence_.device;
  const Source& source = evidence_.source;
  trace::Result<forecast::Stream> stream =
      forecast::BuildStream(source.file, source.tables, source.stacks, *source.scan, options);
  if (!stream.ok() || !stream.value().facts.whole) return nullptr;
  const auto made = forecast::Planner::Make({std::move(stream.value())});
  if (made.ok()) planner_ = made.value();
  return planner_.get();
}

Predicted Predictor::Judge(const forecast::Stream& stream, const forecast::ReplayOptions& options) {
  const forecast::Card card = forecast::RecordedCard(planner_->facts());
  forecast::ReplayOptions on_card = options;
  on_card.total = card.total;
  on_card.elsewhere = card.elsewhere;
  forecast::ReplayOptions unlimited = options;
  unlimited.total = 0;
  const forecast::Outcome outcome = forecast::Replay(stream, unlimited);
  return Of(forecast::Judge(stream, outcome, on_card, planner_->recorded().band));
}

bool Predictor::Predict(Remedy* remedy, std::string* why) {
  const forecast::Technique* technique = forecast::FindTechnique(remedy->technique);
  if (remedy->forecast == Forecast::kNone) return true;
  forecast::Planner* plan = planner();
  if (plan == nullptr) return true;
  const forecast::Prediction& recorded = plan->recorded();
  if (technique != nullptr && technique->is_on(*recorded.stream)) {
    *why = fmt::format("{}: it is on already", technique->words);
    return false;
  }
  const uint64_t batch = remedy->forecast == Forecast::kBatch ? remedy->batch : plan->facts().batch;
  if (technique != nullptr || remedy->forecast == Forecast::kBatch) {
    std::vector<forecast::Chosen> chosen;
    if (technique != nullptr) chosen.push_back({technique, {}});
    const forecast::Prediction& prediction = plan->Predict(batch, chosen);
    if (!prediction.refused.empty()) {
      *why = fmt::format("{}: {}", remedy->change, prediction.refused);
      return technique == nullptr;
    }
    remedy->predicted = Of(plan->JudgeOn(prediction, forecast::RecordedCard(plan->facts())));
  } else if (remedy->forecast == Forecast::kExpandable) {
    forecast::ReplayOptions options = recorded.options;
    options.settings.expandable_segments = true;
    remedy->predicted = Judge(*recorded.stream, options);
  } else if (remedy->forecast == Forecast::kWithout) {
    size_t removed = 0;
    const forecast::Stream stream = Without(*recorded.stream, *remedy, &removed);
    if (removed > 0) remedy->predicted = Judge(stream, recorded.options);
  }
  if (!remedy->predicted) return true;
  const Predicted& after = *remedy->predicted;
  if (evidence_.refused && !after.fits) {
    *why = fmt::format("{}: still {}, more than the card has", remedy->change, Size(after.used));
    return false;
  }
  const uint64_t before = plan->JudgeOn(recorded, forecast::RecordedCard(plan->facts())).expected;
  if (after.used >= before) {
    *why = fmt::format("{}: no effect on this peak, another one is as high", remedy->change);
    return false;
  }
  return true;
}

void Predictor::Weigh(Finding* finding) {
  std::vector<Remedy> kept;
  for (Remedy& remedy : finding->remedies) {
    std::string why;
    const bool helps = Predict(&remedy, &why);
    const uint64_t missing = evidence_.Missing();
    const bool too_small =
        !remedy.predicted && missing > 0 && remedy.saves_most > 0 && remedy.saves_most < missing;
    if (too_small)
      why = fmt::format("{}: at most {}, and {} are missing", remedy.change, Size(remedy.saves_most),
                        Size(missing));
    if (helps && !too_small) {
      kept.push_back(std::move(remedy));
    } else if (!why.empty()) {
      finding->cannot.push_back(why);
    }
  }
  finding->remedies = std::move(kept);
}

}  // namespace vramtrace::diagnose
