#include "analyzer/forecast/bands.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vramtrace::forecast {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// How far the truth lies from what was predicted, as shares of the prediction: smaller by up to `low`, larger
// by up to `high`.
struct Residual {
  double low = 0;
  double high = 0;
};
struct Residuals {
  Residual allocated;
  Residual reserved;
};

// Forecasts against dry runs of the same program at the forecast's batch, by Basis. `script/accuracy batch`
// prints what the first half of its cases would give here, and how many of the other half these rows hold.
// Made of residuals from before buffers of reductions were limited, all but the low end of reserved bytes
// from one recording, which a run with checkpointing passed since; what was measured since lies mostly far
// inside (tests/accuracy/batch/README.md).
constexpr Residuals kOfBasis[] = {
    {{0, 0}, {0, 0}},                     // kRecording: the replay is exact, which every forecast checks
    {{0.006, 0.0005}, {0.0095, 0.0015}},  // kTwoRecordings
    {{0.015, 0.001}, {0.03, 0.053}},      // kOneRecording
    {{0.098, 0.057}, {0.083, 0.127}},     // kOneSample
};

// Forecasts with techniques against dry runs with them, beside the techniques' own residuals of allocated
// bytes (technique.def): reserved bytes, and the least a run can do with. `script/accuracy techniques`.
constexpr Residual kReservedOfEdited = {0.09, 0.03};
constexpr double kLeastOfEdited = 0.10;

// Dry runs against real cards: published measurements that were run again on the simulated device. Made of
// every second one; the others lie within. Left out: runs whose batch lengths nobody wrote down (reserved
// moves by tens of percent with their order: that is the spread of reserved, not this band) and one whose
// trainer is not public. tests/accuracy/batch/README.md, Real cards.
constexpr Residuals kOfDryRun = {{0.001, 0.001}, {0.01, 0.01}};
constexpr Residuals kOfDryRunWithConvolutions = {{0.002, 0.011}, {0.065, 0.048}};

// Bytes outside the allocator, of a dry run. The context is measured on two architectures and a prior on the
// others (preload/simulator/README.md, What is modelled); code that kernels load later, which a dry run does
// not charge, made device used grow by up to 94 MiB beyond reserved (A100 with 40 GB; 34 MiB on cards of 8
// and 12 GB).
constexpr int64_t kContext = 150 * kMiB;
constexpr int64_t kLoadedCode = 94 * kMiB;

// Where what a recording lacks can only be guessed at: block sizes in place of requested ones are rounded
// twice (1.2 % of a model's optimizer state was seen to move); without the optimizer's step, or with events
// lost, up to a tenth of the memory was not seen. No sources beyond these: guesses, on the wide side.
constexpr double kSizesUnknown = 0.012;
constexpr double kEventsUnseen = 0.10;
// Of the bytes that have no partner in the second recording.
constexpr double kUnmatched = 0.1;

constexpr double kTail = 0.025;  // beyond each end of a band

double Root(double a, double b, double c) { return std::sqrt(a * a + b * b + c * c); }

Bytes Shifted(Bytes bytes, double share) {
  return static_cast<Bytes>(std::max<double>(0, std::round(static_cast<double>(bytes) * (1 + share))));
}

Bytes Plus(Bytes bytes, int64_t change) {
  if (change >= 0) return bytes + static_cast<Bytes>(change);
  return bytes - std::min(bytes, static_cast<Bytes>(-change));
}

void WidenForGaps(const Evidence& evidence, Residual* residual) {
  double missing = kUnmatched * (1 - evidence.matched_share);
  if (!evidence.sizes_known) missing = std::max(missing, kSizesUnknown);
  if (evidence.events_lost || !evidence.steps_seen) missing = std::max(missing, kEventsUnseen);
  residual->low += missing;
  residual->high += missing + evidence.undecided_share;
}

bool RunsThrough(const Stream& stream, ReplayOptions options, Bytes segments) {
  options.total = options.elsewhere + std::max<Bytes>(segments, 1);
  return !Replay(stream, options).failure.has_value();
}

}  // namespace

bool HasConvolutions(const Stream& stream) {
  return std::any_of(stream.sites.begin(), stream.sites.end(), [](const Site& site) {
    return site.operator_name.find("onvolution") != std::string::npos;
  });
}

bool HasConvolutions(const model::Tables& tables) {
  for (uint32_t i = 0; i < tables.strings.size(); ++i) {
    if (tables.strings[model::StringId{i}].find("onvolutionBackward") != std::string::npos) return true;
  }
  return false;
}

double UndecidedShare(const Stream& at_batch, const Outcome& outcome) {
  const uint64_t recorded = at_batch.facts.batch;
  if (recorded == 0 || at_batch.batch <= recorded || outcome.allocated.bytes == 0) return 0;
  Bytes unknown = 0;
  for (uint32_t i = 0; i <= outcome.allocated.event && i < at_batch.events.size(); ++i) {
    const Event& event = at_batch.events[i];
    if (event.kind == EventKind::kStepEnd) continue;
    const Request& request = at_batch[event.request];
    if (request.law.basis != LawBasis::kUnknown) continue;
    unknown = event.kind == EventKind::kAllocate ? unknown + request.bytes : unknown - request.bytes;
  }
  const double growth = static_cast<double>(at_batch.batch) / static_cast<double>(recorded) - 1;
  return growth * static_cast<double>(unknown) / static_cast<double>(outcome.allocated.bytes);
}

Band BandOf(const Evidence& evidence) {
  Residuals forecast = kOfBasis[static_cast<size_t>(evidence.basis)];
  WidenForGaps(evidence, &forecast.allocated);
  WidenForGaps(evidence, &forecast.reserved);
  Residuals card;
  if (evidence.simulated) card = evidence.convolutions ? kOfDryRunWithConvolutions : kOfDryRun;
  const double less = std::max(0.0, -evidence.technique_low);
  const double more = std::max(0.0, evidence.technique_high);
  Band band;
  band.allocated_low = -Root(forecast.allocated.low, card.allocated.low, less);
  band.allocated_high = Root(forecast.allocated.high, card.allocated.high, more);
  const Residual edited = evidence.edited ? kReservedOfEdited : Residual{};
  band.reserved_low = -Root(forecast.reserved.low, card.reserved.low, std::max(less, edited.low));
  band.reserved_high = Root(forecast.reserved.high, card.reserved.high, std::max(more, edited.high));
  band.least_low = std::min(band.reserved_low, evidence.edited ? -kLeastOfEdited : 0.0);
  if (evidence.simulated) {
    band.elsewhere_low = -kContext;
    band.elsewhere_high = kContext + kLoadedCode;
  }
  return band;
}

std::string BasisText(const Evidence& evidence) {
  switch (evidence.basis) {
    case Basis::kRecording:
      return "the recorded run, replayed";
    case Basis::kTwoRecordings:
      return "sizes fitted through two recordings";
    case Basis::kOneRecording:
      return "sizes by rule from one recording";
    case Basis::kOneSample:
      return "sizes by rule from one recording of batch 1, where everything divides by the batch: record a "
             "larger batch for a narrow band";
  }
  return {};
}

Judgement Judge(const Stream& stream, const Outcome& outcome, const ReplayOptions& options,
                const Band& band) {
  Judgement judgement;
  const Bytes total = options.total;
  const Bytes elsewhere_low = Plus(options.elsewhere, band.elsewhere_low);
  const Bytes elsewhere_high = Plus(options.elsewhere, band.elsewhere_high);
  judgement.expected = outcome.reserved.bytes + options.elsewhere;
  judgement.high = Shifted(outcome.reserved.bytes, band.reserved_high) + elsewhere_high;
  judgement.low = Shifted(outcome.allocated.bytes, band.allocated_low) + elsewhere_low;
  const auto conclude = [&](Verdict verdict, Bytes least) {
    const Bytes low = std::min(Shifted(least, band.least_low) + elsewhere_low, judgement.expected);
    const Bytes high = Shifted(least, band.reserved_high) + elsewhere_high;
    judgement.verdict = verdict;
    judgement.margin = static_cast<int64_t>(total) - static_cast<int64_t>(high);
    judgement.probability = ProbabilityThatFits(low, least + options.elsewhere, high, total);
    judgement.under_pressure = verdict != Verdict::kDoesNotFit && judgement.high > total;
    return judgement;
  };
  if (judgement.high <= total) return conclude(Verdict::kFits, outcome.reserved.bytes);
  if (judgement.low > total) return conclude(Verdict::kDoesNotFit, outcome.allocated.bytes);

  const Bytes least = LeastReserved(stream, outcome, options);
  if (Shifted(least, band.reserved_high) + elsewhere_high <= total) return conclude(Verdict::kFits, least);
  const bool none = Shifted(least, band.least_low) + elsewhere_low > total;
  return conclude(none ? Verdict::kDoesNotFit : Verdict::kNear, least);
}

// Errors fall off exponentially on either side of the prediction: measured ones have longer tails than a
// normal distribution.
double ProbabilityThatFits(Bytes low, Bytes expected, Bytes high, Bytes total) {
  const auto at = static_cast<double>(total) - static_cast<double>(expected);
  const double reach = at >= 0 ? static_cast<double>(high) - static_cast<double>(expected)
                               : static_cast<double>(expected) - static_cast<double>(low);
  if (reach <= 0) return at >= 0 ? 1 : 0;
  const double beyond = 0.5 * std::exp(std::log(2 * kTail) * std::abs(at) / reach);
  return at >= 0 ? 1 - beyond : beyond;
}

Bytes LeastReserved(const Stream& stream, const Outcome& outcome, const ReplayOptions& options) {
  constexpr Bytes kPrecision = Bytes{2} << 20;
  const auto up = [](Bytes bytes) { return (bytes + kPrecision - 1) / kPrecision * kPrecision; };
  Bytes enough = up(outcome.reserved.bytes);
  Bytes too_few = up(outcome.allocated.bytes);
  if (too_few >= enough || RunsThrough(stream, options, too_few)) return std::min(too_few, enough);
  while (enough - too_few > kPrecision) {
    const Bytes middle = too_few + (enough - too_few) / 2 / kPrecision * kPrecision;
    (RunsThrough(stream, options, middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace vramtrace::forecast
