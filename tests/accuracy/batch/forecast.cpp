// batch_forecast TRACE BATCH [TRACE BATCH] -- BATCH...: what the run would take at each batch, from one
// recording or two, as one JSON object a line. Bands are those of forecasts against dry runs: a card's own
// spread is not in them.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "analyzer/forecast/build_stream.h"
#include "analyzer/forecast/planner.h"

namespace {

using namespace vramtrace::forecast;  // NOLINT(google-build-using-namespace): a program of its own

int Fail(const std::string& message) {
  fmt::print(stderr, "batch_forecast: {}\n", message);
  return 3;
}

void Print(Planner* planner, uint64_t batch) {
  const Prediction& prediction = planner->Predict(batch, {});
  Evidence evidence = planner->EvidenceFor(batch, {});
  evidence.undecided_share = UndecidedShare(*prediction.stream, prediction.outcome);
  evidence.simulated = false;
  const Band band = BandOf(evidence);
  fmt::print(
      "{{\"batch\": {}, \"allocated\": {}, \"reserved\": {}, \"allocated_low\": {}, \"allocated_high\": {}, "
      "\"reserved_low\": {}, \"reserved_high\": {}, \"matched\": {}, \"undecided\": {}}}\n",
      batch, prediction.outcome.allocated.bytes, prediction.outcome.reserved.bytes, band.allocated_low,
      band.allocated_high, band.reserved_low, band.reserved_high, planner->alignment().share(),
      evidence.undecided_share);
}

int Run(const std::vector<std::string>& recordings, const std::vector<std::string>& batches) {
  std::vector<Stream> streams;
  for (size_t at = 0; at + 1 < recordings.size(); at += 2) {
    const uint64_t batch = std::strtoull(recordings[at + 1].c_str(), nullptr, 10);
    auto stream = BuildStream(recordings[at], {.device = {}, .batch = batch});
    if (!stream.ok()) return Fail(stream.error().Sentence());
    streams.push_back(std::move(stream.value()));
  }
  const auto planner = Planner::Make(std::move(streams));
  if (!planner.ok()) return Fail(planner.error().Sentence());
  for (const std::string& batch : batches) {
    Print(planner.value().get(), std::strtoull(batch.c_str(), nullptr, 10));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> recordings, batches;
  bool targets = false;
  for (int at = 1; at < argc; ++at) {
    if (std::strcmp(argv[at], "--") == 0) {
      targets = true;
    } else {
      (targets ? batches : recordings).emplace_back(argv[at]);
    }
  }
  if (recordings.empty() || recordings.size() % 2 != 0 || batches.empty()) {
    fmt::print(stderr, "usage: batch_forecast TRACE BATCH [TRACE BATCH] -- BATCH...\n");
    return 2;
  }
  return Run(recordings, batches);
}
