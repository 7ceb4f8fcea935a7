#include "analyzer/forecast/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace vramtrace::forecast {
namespace {

// With two recordings, the one whose batch is nearer by ratio is edited: kernels change with size.
double Distance(uint64_t a, uint64_t b) {
  return std::fabs(std::log(static_cast<double>(a)) - std::log(static_cast<double>(b)));
}

bool Contains(std::span<const Chosen> chosen, const Technique* technique) {
  return std::any_of(chosen.begin(), chosen.end(),
                     [&](const Chosen& one) { return one.technique == technique; });
}

std::string TextOf(std::span<const Chosen> chosen) {
  std::string text;
  for (const Chosen& one : chosen) text += (text.empty() ? "" : " ") + forecast::TextOf(one);
  return text;
}

bool Cheaper(const Candidate& a, const Candidate& b) {
  if (a.price != b.price) return a.price < b.price;
  if (a.slower_high != b.slower_high) return a.slower_high < b.slower_high;
  const size_t of_a = a.prediction->techniques.size();
  const size_t of_b = b.prediction->techniques.size();
  return of_a != of_b ? of_a < of_b : a.saves > b.saves;
}

trace::Error CannotPair(const Stream& second, std::string why) {
  return trace::Error{second.facts.trace, std::nullopt, std::move(why)};
}

}  // namespace

trace::Result<std::shared_ptr<Planner>> Planner::Make(std::vector<Stream> streams) {
  trace::Result<ReplayOptions> options = OptionsOf(streams.front().facts);
  if (!options.ok()) return options.error();
  const std::shared_ptr<Planner> planner(new Planner());
  planner->options_ = options.value();
  if (streams.size() > 1) {
    const Stream& first = streams[0];
    Stream& second = streams[1];
    if (first.batch == 0 || second.batch == 0) {
      return CannotPair(
          second.batch == 0 ? second : first,
          "the batch of this recording is not known (no input of the root module says it); give "
          "it with --recorded-batch.");
    }
    if (first.batch == second.batch) {
      return CannotPair(second,
                        fmt::format("was recorded with batch {}, as the other trace was; two recordings "
                                    "tell the sizes' laws only where their batches differ.",
                                    second.batch));
    }
    const Stream copy = streams[0];
    planner->alignment_ = SetLawsByTwo(&streams[0], second);
    SetLawsByTwo(&second, copy);
    constexpr double kLeastShare = 0.5;
    if (planner->alignment_.share() < kLeastShare) {
      return CannotPair(second,
                        fmt::format("only {:.0f} % of its bytes are asked for at places that the other "
                                    "trace has too: these are not two runs of one program.",
                                    100 * planner->alignment_.share()));
    }
  }
  for (Stream& stream : streams) {
    planner->streams_.push_back(std::make_shared<const Stream>(std::move(stream)));
  }
  return planner;
}

size_t Planner::NearestTo(uint64_t batch) const {
  const auto nearest = std::min_element(streams_.begin(), streams_.end(), [&](const auto& a, const auto& b) {
    return Distance(a->batch, batch) < Distance(b->batch, batch);
  });
  return static_cast<size_t>(nearest - streams_.begin());
}

const std::variant<Stream, std::string>& Planner::EditedFor(uint64_t batch, std::span<const Chosen> chosen) {
  const size_t nearest = NearestTo(batch);
  const std::string key = fmt::format("{} {}", nearest, TextOf(chosen));
  const auto known = edited_.find(key);
  if (known != edited_.end()) return known->second;
  return edited_.emplace(key, ApplyTechniques(*streams_[nearest], chosen)).first->second;
}

std::vector<uint64_t> Planner::RecordedBatches() const {
  std::vector<uint64_t> batches;
  for (const auto& stream : streams_) {
    if (stream->batch != 0) batches.push_back(stream->batch);
  }
  return batches;
}

const Prediction& Planner::recorded() { return Predict(facts().batch, {}); }

bool Planner::ReplayIsExact() {
  const Outcome& outcome = recorded().outcome;
  return facts().requests_without_size == 0 && outcome.allocated.bytes == facts().peak_allocated &&
         outcome.reserved.bytes == facts().peak_reserved;
}

Evidence Planner::EvidenceFor(uint64_t batch, std::span<const Chosen> chosen) const {
  Evidence evidence;
  const bool recorded = std::any_of(streams_.begin(), streams_.end(),
                                    [&](const auto& stream) { return stream->batch == batch; });
  evidence.basis = recorded             ? Basis::kRecording
                   : two_recordings()   ? Basis::kTwoRecordings
                   : facts().batch == 1 ? Basis::kOneSample
                                        : Basis::kOneRecording;
  evidence.simulated = facts().simulated;
  evidence.convolutions = HasConvolutions(*streams_.front());
  evidence.sizes_known = facts().requests_without_size == 0;
  evidence.events_lost = facts().lost_events;
  evidence.steps_seen = facts().whole;
  if (two_recordings()) evidence.matched_share = alignment_.share();
  evidence.edited = !chosen.empty();
  for (const Chosen& one : chosen) {
    evidence.technique_low += one.technique->residual_low;
    evidence.technique_high += one.technique->residual_high;
  }
  return evidence;
}

const Prediction& Planner::Predict(uint64_t batch, std::span<const Chosen> chosen) {
  std::unique_ptr<Prediction>& known = predictions_[fmt::format("{} {}", batch, TextOf(chosen))];
  if (known != nullptr) return *known;
  known = std::make_unique<Prediction>();
  Prediction& prediction = *known;
  prediction.batch = batch;
  prediction.techniques.assign(chosen.begin(), chosen.end());
  prediction.options = options_;
  const std::variant<Stream, std::string>& edited = EditedFor(batch, chosen);
  if (const auto* why = std::get_if<std::string>(&edited)) {
    prediction.refused = *why;
    return prediction;
  }
  for (const Chosen& one : chosen) {
    if (one.technique->settings != nullptr) one.technique->settings(&prediction.options, one.options);
  }
  prediction.stream = std::make_shared<const Stream>(AtBatch(std::get<Stream>(edited), batch));
  prediction.outcome = Replay(*prediction.stream, prediction.options);
  Orders orders = TryOrders(*prediction.stream, prediction.options, prediction.outcome);
  if (orders.tried > 0) prediction.orders = std::make_shared<const Orders>(std::move(orders));
  Evidence evidence = EvidenceFor(batch, chosen);
  evidence.undecided_share = UndecidedShare(*prediction.stream, prediction.outcome);
  prediction.band = BandOf(evidence);
  return prediction;
}

Judgement Planner::JudgeOn(const Prediction& prediction, const Card& card) const {
  ReplayOptions options = prediction.options;
  options.total = card.total;
  options.elsewhere = card.elsewhere;
  Judgement judgement =
      prediction.orders != nullptr
          ? Judge(prediction.orders->worst, prediction.orders->outcome, options, prediction.band)
          : Judge(*prediction.stream, prediction.outcome, options, prediction.band);
  // A run that is too large as far as it was seen is too large; one that would fit so far may not.
  if (!facts().whole && judgement.verdict != Verdict::kDoesNotFit) {
    judgement.verdict = Verdict::kUnknown;
    judgement.probability = 0;
  }
  return judgement;
}

std::optional<uint64_t> Planner::LargestBatch(const Card& card, std::span<const Chosen> chosen) {
  if (facts().batch == 0 || card.total == 0) return std::nullopt;
  const auto fits = [&](uint64_t batch) {
    const Prediction& prediction = Predict(batch, chosen);
    return prediction.refused.empty() && JudgeOn(prediction, card).verdict == Verdict::kFits;
  };
  if (!fits(1)) return std::nullopt;
  uint64_t low = 1;
  uint64_t high = 2;
  while (high < kMostBatch && fits(high)) {
    low = high;
    high *= 2;
  }
  if (high >= kMostBatch) return kMostBatch;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

Candidate Planner::Weigh(const Prediction& prediction, size_t base, const Card& card,
                         const Advice& advice) const {
  Candidate candidate;
  candidate.prediction = &prediction;
  candidate.judgement = JudgeOn(prediction, card);
  double low = 1;
  double high = 1;
  for (size_t i = base; i < prediction.techniques.size(); ++i) {
    const Technique& technique = *prediction.techniques[i].technique;
    candidate.price = std::max(candidate.price, technique.price);
    low *= 1 + technique.slower_low;
    high *= 1 + technique.slower_high;
  }
  candidate.slower_low = low - 1;
  candidate.slower_high = high - 1;
  candidate.saves =
      static_cast<int64_t>(advice.judgement.expected) - static_cast<int64_t>(candidate.judgement.expected);
  const Bytes most = std::max(advice.judgement.expected, candidate.judgement.low) - candidate.judgement.low;
  candidate.saves_most = most;
  return candidate;
}

std::vector<Candidate> Planner::WeighAlone(const Card& card, uint64_t batch, std::span<const Chosen> chosen,
                                           Advice* advice) {
  std::vector<Candidate> alone;
  for (const Technique& technique : Techniques()) {
    if (Contains(chosen, &technique)) continue;
    if (technique.is_on != nullptr && technique.is_on(*streams_.front())) {
      advice->already_on.push_back(&technique);
      continue;
    }
    std::vector<Chosen> with(chosen.begin(), chosen.end());
    with.push_back({&technique, {}});
    const Prediction& prediction = Predict(batch, with);
    if (!prediction.refused.empty()) {
      advice->refused.push_back(&prediction);
      continue;
    }
    alone.push_back(Weigh(prediction, chosen.size(), card, *advice));
  }
  return alone;
}

// Of what does not do alone, the best few with one another.
void Planner::WeighPairs(const Card& card, uint64_t batch, size_t base, std::vector<const Candidate*> partial,
                         Advice* advice) {
  constexpr size_t kMostPartners = 8;
  std::stable_sort(partial.begin(), partial.end(),
                   [](const Candidate* a, const Candidate* b) { return a->saves > b->saves; });
  if (partial.size() > kMostPartners) partial.resize(kMostPartners);
  for (size_t i = 0; i < partial.size(); ++i) {
    for (size_t j = i + 1; j < partial.size(); ++j) {
      std::vector<Chosen> with = partial[i]->prediction->techniques;
      with.push_back(partial[j]->prediction->techniques.back());
      const Prediction& prediction = Predict(batch, with);
      if (!prediction.refused.empty()) continue;
      Candidate pair = Weigh(prediction, base, card, *advice);
      if (pair.judgement.verdict == Verdict::kFits) advice->fitting.push_back(pair);
    }
  }
}

Advice Planner::Advise(const Card& card, uint64_t batch, std::span<const Chosen> chosen) {
  Advice advice;
  advice.as_is = &Predict(batch, chosen);
  if (!advice.as_is->refused.empty()) return advice;
  advice.judgement = JudgeOn(*advice.as_is, card);
  const std::vector<Candidate> alone = WeighAlone(card, batch, chosen, &advice);
  const Bytes shortage = advice.judgement.high > card.total ? advice.judgement.high - card.total : 0;
  std::vector<const Candidate*> partial;
  for (const Candidate& candidate : alone) {
    const bool fits = candidate.judgement.verdict == Verdict::kFits;
    if (fits && (candidate.saves > 0 || advice.judgement.verdict != Verdict::kFits)) {
      advice.fitting.push_back(candidate);
    }
    if (fits) continue;
    (candidate.saves_most < shortage ? advice.useless : advice.falling_short).push_back(candidate);
    if (candidate.saves > 0) partial.push_back(&candidate);
  }
  WeighPairs(card, batch, chosen.size(), std::move(partial), &advice);
  std::stable_sort(advice.fitting.begin(), advice.fitting.end(), Cheaper);
  const auto by_saving = [](const Candidate& a, const Candidate& b) { return a.saves > b.saves; };
  std::stable_sort(advice.falling_short.begin(), advice.falling_short.end(), by_saving);
  std::stable_sort(advice.useless.begin(), advice.useless.end(), by_saving);
  return advice;
}

std::string TextOf(const Chosen& chosen) {
  const TechniqueOptions usual;
  std::string options;
  const auto add = [&](std::string_view name, const auto& value, const auto& default_value) {
    if (value != default_value) options += fmt::format("{}{}={}", options.empty() ? ":" : ",", name, value);
  };
  add("every", chosen.options.every, usual.every);
  add("rank", chosen.options.rank, usual.rank);
  add("cards", chosen.options.cards, usual.cards);
  add("targets", chosen.options.targets, usual.targets);
  add("chunks", chosen.options.chunks, usual.chunks);
  add("blocks", chosen.options.blocks, usual.blocks);
  add("steps", chosen.options.steps, usual.steps);
  add("length", chosen.options.length, usual.length);
  return std::string(chosen.technique->key) + options;
}

}  // namespace vramtrace::forecast
