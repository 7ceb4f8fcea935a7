#pragma once
// How far a prediction may be off, and what that means for a card. Every constant stands in bands.cpp with
// its source; none is tuned to one case.
//
// A band holds the true value in 95 % of cases: 2.5 % lie below its low end and 2.5 % above its high end.
// Errors are independent and add as the root of the sum of squares: those of forecasts, against dry runs of
// the same program; those of techniques; and those of dry runs, against published measurements of the same
// counter on real cards. So a forecast that was only checked on the simulated device does not pass for a
// measurement.

#include <cstdint>
#include <string>

#include "analyzer/forecast/replay.h"
#include "analyzer/model/tables.h"

namespace vramtrace::forecast {

// What the sizes of a prediction rest on.
enum class Basis : uint8_t {
  kRecording,      // the batch that was recorded, replayed
  kTwoRecordings,  // laws through two recordings
  kOneRecording,   // laws by rule
  kOneSample,      // laws by rule from a recording of batch 1, where everything divides by the batch
};

struct Evidence {
  Basis basis = Basis::kOneRecording;
  bool simulated = true;      // recorded in a dry run: the device is a model
  bool convolutions = false;  // cuDNN chose plans and workspaces, which no dry run can ask it for
  bool sizes_known = true;    // every requested size was recorded
  bool events_lost = false;
  bool steps_seen = true;      // at least two optimizer steps: no phase is missing
  double matched_share = 1;    // of bytes, with two recordings
  double undecided_share = 0;  // of bytes at the peak: what they would add, were they to follow the batch
  // By techniques: the order of requests is then that of the program to a few, which moves reserved bytes.
  bool edited = false;
  // Shares of allocated bytes that the techniques' own residuals add (Technique::residual_*).
  double technique_low = 0;
  double technique_high = 0;
};

// Convolution nodes ran in backward.
[[nodiscard]] bool HasConvolutions(const Stream& stream);
// The same of a trace's tables, which name the nodes that ran.
[[nodiscard]] bool HasConvolutions(const model::Tables& tables);
// Requests of unknown law alive at the peak are kept as recorded. Were they proportional to the batch, the
// peak would be this share higher. 0 where the batch does not grow.
[[nodiscard]] double UndecidedShare(const Stream& at_batch, const Outcome& outcome);

// Shares of the predicted figure, and bytes of what is not the allocator's. low <= 0 <= high.
struct Band {
  double allocated_low = 0;
  double allocated_high = 0;
  double reserved_low = 0;
  double reserved_high = 0;
  // Of the least that the run can do with (LeastReserved): where memory is short, a request moved by one
  // place may decide what can be given back.
  double least_low = 0;
  int64_t elsewhere_low = 0;
  int64_t elsewhere_high = 0;
};

[[nodiscard]] Band BandOf(const Evidence& evidence);
// One clause: "sizes fitted through two recordings".
[[nodiscard]] std::string BasisText(const Evidence& evidence);

enum class Verdict : uint8_t {
  kFits,        // the upper end of the band does
  kNear,        // only a part of the band does
  kDoesNotFit,  // not even the lower end does
  kUnknown,     // the stream does not hold the whole run (RunFacts::whole); never of Judge
};

struct Judgement {
  Verdict verdict = Verdict::kNear;
  // Device used: the lower end of what the run can do with (the cache given back under pressure), as
  // predicted without a limit, and the upper end of that.
  Bytes low = 0;
  Bytes expected = 0;
  Bytes high = 0;
  // The card's total less the upper end of what the run can do with; negative: short.
  int64_t margin = 0;
  double probability = 0;       // that the run fits, 0 to 1
  bool under_pressure = false;  // it fits only because the allocator gives its cache back
};

// `outcome`: of `stream` replayed without a limit. `options.total` is the card's, `options.elsewhere` what it
// holds besides.
[[nodiscard]] Judgement Judge(const Stream& stream, const Outcome& outcome, const ReplayOptions& options,
                              const Band& band);

// That a run fits whose need is `expected`, with 2.5 % of cases below `low` and 2.5 % above `high`.
[[nodiscard]] double ProbabilityThatFits(Bytes low, Bytes expected, Bytes high, Bytes total);

// The least bytes of segments with which the stream runs through. PyTorch's allocator gives its cache back
// before it fails, so more reserved than a card has is no failure. Found by replays, to 2 MiB: a replay with
// the answer went through, one directly below it failed.
[[nodiscard]] Bytes LeastReserved(const Stream& stream, const Outcome& outcome, const ReplayOptions& options);

}  // namespace vramtrace::forecast
