#include "analyzer/report/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyzer/report/units.h"

namespace vramtrace::report {
namespace {

using forecast::Advice;
using forecast::Candidate;
using forecast::Card;
using forecast::Chosen;
using forecast::Judgement;
using forecast::Planner;
using forecast::Price;
using forecast::Technique;
using forecast::Verdict;

const char* KeyOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kNear:
      return "near";
    case Verdict::kDoesNotFit:
      return "does_not_fit";
    case Verdict::kUnknown:
      return "unknown";
  }
  return "";
}

const char* KeyOf(Price price) {
  switch (price) {
    case Price::kNothing:
      return "nothing";
    case Price::kTime:
      return "time";
    case Price::kChangesTraining:
      return "changes_training";
    case Price::kMoreCards:
      return "more_cards";
  }
  return "";
}

const char* KeyOf(forecast::Basis basis) {
  switch (basis) {
    case forecast::Basis::kRecording:
      return "recording";
    case forecast::Basis::kTwoRecordings:
      return "two_recordings";
    case forecast::Basis::kOneRecording:
      return "one_recording";
    case forecast::Basis::kOneSample:
      return "one_sample";
  }
  return "";
}

class Maker {
 public:
  Maker(Planner& planner, const ForecastQuestion& question) : planner_(planner), question_(question) {
    batch_ = question.batch != 0 ? question.batch : planner.facts().batch;
    card_ = question.card ? *question.card : forecast::RecordedCard(planner.facts());
  }

  v1::Forecast Make(const std::vector<std::string>& traces) {
    for (const std::string& trace : traces) out_.add_traces(trace);
    FillRun();
    FillCard(card_, out_.mutable_card());
    const Advice advice = planner_.Advise(card_, batch_, question_.techniques);
    if (!advice.as_is->refused.empty()) {
      Refuse(*advice.as_is);
      return std::move(out_);
    }
    Fill(*advice.as_is, card_.total == 0 ? nullptr : &advice.judgement, out_.mutable_prediction());
    if (planner_.facts().whole) FillAdvice(advice);
    FillBatches();
    if (question_.cards && planner_.facts().whole) FillCards(*advice.as_is);
    FillNotes();
    return std::move(out_);
  }

 private:
  void FillRun() {
    const forecast::RunFacts& facts = planner_.facts();
    out_.set_schema(1);
    out_.set_vramtrace_version(VRAMTRACE_VERSION);
    for (const std::string& argument : facts.command) out_.add_arguments(argument);
    out_.set_recorded_on(facts.gpu);
    out_.set_simulated(facts.simulated);
    for (const uint64_t batch : planner_.RecordedBatches()) out_.add_recorded_batches(batch);
    for (const forecast::Input& input : facts.inputs) {
      v1::Input* row = out_.add_inputs();
      row->set_name(input.name);
      row->set_dtype(input.dtype);
      for (const int64_t dimension : input.shape) row->add_shape(dimension);
    }
    out_.set_steps(facts.steps);
    out_.set_whole(facts.whole);
    const forecast::Evidence evidence = planner_.EvidenceFor(batch_, question_.techniques);
    out_.set_basis(KeyOf(evidence.basis));
    out_.set_basis_text(forecast::BasisText(evidence));
    out_.set_matched_share(evidence.matched_share);
    out_.mutable_recorded()->set_allocated(facts.peak_allocated);
    out_.mutable_recorded()->set_reserved(facts.peak_reserved);
    const forecast::Outcome& replayed = planner_.recorded().outcome;
    out_.mutable_replayed()->set_allocated(replayed.allocated.bytes);
    out_.mutable_replayed()->set_reserved(replayed.reserved.bytes);
    out_.set_replay_exact(planner_.ReplayIsExact());
  }

  static void FillCard(const Card& card, v1::ForecastCard* out) {
    out->set_id(card.id);
    out->set_name(card.name);
    out->set_total(card.total);
    out->set_elsewhere(card.elsewhere);
    out->set_elsewhere_basis(card.elsewhere_basis);
  }

  void Fill(const forecast::Prediction& prediction, const Judgement* judgement, v1::Prediction* out) const {
    const forecast::Outcome& outcome = prediction.outcome;
    out->set_batch(prediction.batch);
    for (const Chosen& chosen : prediction.techniques) out->add_techniques(forecast::TextOf(chosen));
    out->set_allocated(outcome.allocated.bytes);
    out->set_reserved(outcome.reserved.bytes);
    out->set_used(outcome.reserved.bytes + card_.elsewhere);
    if (judgement != nullptr) {
      out->set_used_low(judgement->low);
      out->set_used_high(judgement->high);
      out->set_verdict(KeyOf(judgement->verdict));
      out->set_probability(judgement->probability);
      out->set_margin(judgement->margin);
      out->set_under_pressure(judgement->under_pressure);
    }
    for (size_t i = 0; i < attribution::kMemoryClassCount; ++i) {
      if (outcome.classes[i] == 0) continue;
      v1::ClassRow* row = out->add_classes();
      const auto memory_class = static_cast<attribution::MemoryClass>(i);
      row->set_key(std::string(attribution::KeyOf(memory_class)));
      row->set_words(std::string(attribution::WordsOf(memory_class)));
      row->set_block_bytes(outcome.classes[i]);
      row->set_bytes(outcome.classes[i]);
    }
    std::stable_sort(out->mutable_classes()->begin(), out->mutable_classes()->end(),
                     [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
    if (prediction.orders != nullptr) {
      out->set_orders_tried(prediction.orders->tried);
      out->set_reserved_lowest(prediction.orders->lowest);
      out->set_reserved_highest(prediction.orders->highest);
    }
    out->set_phase(std::string(model::PhaseName(outcome.allocated.phase)));
    out->set_step(outcome.allocated.step);
    if (outcome.allocated.site != forecast::SiteId::kNone) {
      const forecast::Site& site = (*prediction.stream)[outcome.allocated.site];
      out->set_module_path(site.module_path);
      out->set_site(site.text);
    }
    for (size_t i = 0; i < outcome.phases.size(); ++i) {
      if (outcome.phases[i] == 0) continue;
      v1::PhasePeak* phase = out->add_phases();
      phase->set_phase(std::string(model::PhaseName(static_cast<model::Phase>(i))));
      phase->set_allocated(outcome.phases[i]);
    }
  }

  void Refuse(const forecast::Prediction& prediction) {
    v1::Refused* row = out_.add_refused();
    for (const Chosen& chosen : prediction.techniques) {
      row->set_technique(row->technique() + (row->technique().empty() ? "" : " + ") +
                         forecast::TextOf(chosen));
    }
    row->set_why(prediction.refused);
  }

  void Fill(const Candidate& candidate, v1::Candidate* out) const {
    Fill(*candidate.prediction, &candidate.judgement, out->mutable_prediction());
    out->set_price(KeyOf(candidate.price));
    out->set_slower_low(candidate.slower_low);
    out->set_slower_high(candidate.slower_high);
    out->set_saves(candidate.saves);
    out->set_saves_most(candidate.saves_most);
    const std::vector<Chosen>& chosen = candidate.prediction->techniques;
    for (size_t i = question_.techniques.size(); i < chosen.size(); ++i) {
      const Technique& technique = *chosen[i].technique;
      out->add_words(std::string(technique.words));
      if (!technique.training.empty()) out->add_training(std::string(technique.training));
      v1::Setting* setting = out->add_settings();
      setting->set_technique(std::string(technique.key));
      setting->set_pytorch(std::string(technique.pytorch));
      setting->set_transformers(std::string(technique.transformers));
      setting->set_lightning(std::string(technique.lightning));
      setting->set_source(std::string(technique.source));
    }
  }

  void FillAdvice(const Advice& advice) {
    for (const Technique* technique : advice.already_on) out_.add_already_on(std::string(technique->key));
    for (const Candidate& candidate : advice.fitting) Fill(candidate, out_.add_fitting());
    for (const Candidate& candidate : advice.falling_short) Fill(candidate, out_.add_falling_short());
    for (const Candidate& candidate : advice.useless) Fill(candidate, out_.add_useless());
    for (const forecast::Prediction* refused : advice.refused) {
      v1::Refused* row = out_.add_refused();
      row->set_technique(std::string(refused->techniques.back().technique->key));
      row->set_why(refused->refused);
    }
  }

  template <typename Out>
  void FillLargest(const Card& card, Out* out) {
    const std::optional<uint64_t> largest = planner_.LargestBatch(card, question_.techniques);
    if (!largest) return;
    out->set_largest_batch(*largest);
    out->set_largest_unlimited(*largest == Planner::kMostBatch);
  }

  // The asked batch, the largest that fits and its neighbours.
  void FillBatches() {
    if (planner_.facts().batch == 0) return;
    if (planner_.facts().whole) FillLargest(card_, &out_);
    std::set<uint64_t> batches{batch_, planner_.facts().batch};
    for (uint64_t batch = 1; batch <= 2 * batch_ && batch <= Planner::kMostBatch; batch *= 2)
      batches.insert(batch);
    if (out_.has_largest_batch() && !out_.largest_unlimited()) {
      batches.insert(out_.largest_batch());
      batches.insert(out_.largest_batch() + 1);
    }
    constexpr size_t kMost = 8;  // those around the largest that fits, or around the asked one
    const uint64_t centre =
        out_.has_largest_batch() && !out_.largest_unlimited() ? out_.largest_batch() : batch_;
    while (batches.size() > kMost) {
      const bool front = centre - *batches.begin() > 0 && *batches.begin() * 8 < centre;
      batches.erase(front ? batches.begin() : std::prev(batches.end()));
    }
    batches.insert(batch_);
    for (const uint64_t batch : batches) {
      const forecast::Prediction& prediction = planner_.Predict(batch, question_.techniques);
      const Judgement judgement = planner_.JudgeOn(prediction, card_);
      Fill(prediction, card_.total == 0 ? nullptr : &judgement, out_.add_batches());
    }
  }

  void FillCards(const forecast::Prediction& as_is) {
    for (const catalogue::Gpu& gpu : catalogue::Gpus()) {
      const Card card = forecast::CatalogueCard(gpu, planner_.facts());
      if (card.total == 0) continue;
      v1::CardFit* row = out_.add_cards();
      FillCard(card, row->mutable_card());
      const Judgement judgement = planner_.JudgeOn(as_is, card);
      row->set_verdict(KeyOf(judgement.verdict));
      row->set_margin(judgement.margin);
      FillLargest(card, row);
    }
    std::stable_sort(out_.mutable_cards()->begin(), out_.mutable_cards()->end(),
                     [](const auto& a, const auto& b) { return a.card().total() < b.card().total(); });
  }

  void Note(std::string severity, std::string key, std::string text) {
    v1::Note* note = out_.add_notes();
    note->set_severity(std::move(severity));
    note->set_key(std::move(key));
    note->set_text(std::move(text));
  }

  void FillNotes() {
    const forecast::RunFacts& facts = planner_.facts();
    if (facts.batch == 0) {
      Note("information", "batch_unknown",
           "The batch is not known: no input of the root module says it. Give it with --recorded-batch.");
    }
    if (!facts.whole && facts.ended_out_of_memory) {
      Note("loss", "steps",
           "The run ended out of memory before a whole step was seen: what comes after is not in the trace, "
           "and "
           "the real peak may be higher than any figure here. Record it on a larger card for a forecast; a "
           "simulated one will do (vramtrace dry-run).");
    } else if (!facts.whole) {
      Note("loss", "steps",
           "Fewer than two optimizer steps are in the trace: phases are missing, and no verdict is given.");
    }
    if (facts.step_finished) {
      Note("information", "step_finished",
           "The run ended out of memory inside a step; the rest of that step is taken from the one before "
           "it.");
    }
    if (facts.steps_recorded != 0) {
      Note("information", "retained_steps",
           fmt::format("The trace was kept below its limit: of the run's {} steps the first {} are whole and "
                       "the forecast is of them. A peak that came later is not in it.",
                       Grouped(facts.steps_recorded), Grouped(facts.steps)));
    }
    if (facts.lost_events) {
      Note("loss", "lost_events", "Events were lost while recording: the band is wider.");
    }
    if (facts.requests_without_size > 0) {
      Note("loss", "requested_sizes",
           "Requested sizes were not recorded for every block: block sizes stand for them.");
    }
    if (!facts.ended_out_of_memory && facts.requests_without_size == 0 && !planner_.ReplayIsExact()) {
      Note("loss", "replay",
           "The replay of the recording does not give its own peaks to the byte (several streams, private "
           "pools "
           "or lost events): figures are those of the replay.");
    }
  }

  Planner& planner_;
  const ForecastQuestion& question_;
  uint64_t batch_ = 0;
  Card card_;
  v1::Forecast out_;
};

}  // namespace

v1::Forecast MakeForecast(Planner& planner, const std::vector<std::string>& traces,
                          const ForecastQuestion& question) {
  return Maker(planner, question).Make(traces);
}

}  // namespace vramtrace::report
