// technique_predict TRACE TECHNIQUE... [--edge TRACE]: what the run would take with the techniques, as one
// JSON object. What they are written like: `vramtrace forecast --with`. Bands are those of forecasts against
// dry runs: a card's own spread is not in them.
//
// With --edge and the trace of a run with the techniques applied: verdicts on cards of sizes around what that
// run needs at least, and whether it fits there.

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "analyzer/forecast/build_stream.h"
#include "analyzer/forecast/planner.h"

namespace {

using namespace vramtrace::forecast;  // NOLINT(google-build-using-namespace): a program of its own

int Fail(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  return 3;
}

int Say(const nlohmann::json& object) {
  fmt::print("{}\n", object.dump());
  return 0;
}

// Sizes of cards, as shares of what the run needs.
constexpr double kEdges[] = {-0.10, -0.05, -0.03, -0.02, -0.01, -0.005, 0.0,
                             0.005, 0.01,  0.02,  0.03,  0.05,  0.10};

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kDoesNotFit:
      return "does not fit";
    case Verdict::kNear:
    case Verdict::kUnknown:
      break;
  }
  return "near";
}

// What a run can do with: the least bytes of segments.
Bytes LeastOf(const Stream& stream, ReplayOptions options) {
  options.elsewhere = 0;
  options.total = 0;
  return LeastReserved(stream, Replay(stream, options), options);
}

nlohmann::json Edges(Bytes least, const Prediction& prediction, const Band& band) {
  ReplayOptions options = prediction.options;
  options.elsewhere = 0;
  auto edges = nlohmann::json::array();
  for (const double share : kEdges) {
    options.total = static_cast<Bytes>(static_cast<double>(least) * (1 + share));
    const Judgement judgement = Judge(*prediction.stream, prediction.outcome, options, band);
    edges.push_back(
        {{"share", share}, {"fits", options.total >= least}, {"verdict", NameOf(judgement.verdict)}});
  }
  return edges;
}

int Predict(const std::string& trace, const std::vector<std::string>& texts, const std::string& applied) {
  auto stream = BuildStream(trace, {});
  if (!stream.ok()) return Fail(stream.error().message);
  std::vector<Chosen> chosen;
  for (const std::string& text : texts) {
    const auto parsed = ParseTechnique(text);
    if (const auto* why = std::get_if<std::string>(&parsed)) return Say({{"refused", *why}});
    chosen.push_back(std::get<Chosen>(parsed));
  }
  const auto planner = Planner::Make({std::move(stream.value())});
  if (!planner.ok()) return Fail(planner.error().message);
  const uint64_t batch = planner.value()->facts().batch;
  const Prediction& prediction = planner.value()->Predict(batch, chosen);
  if (!prediction.refused.empty()) return Say({{"refused", prediction.refused}});
  Evidence evidence = planner.value()->EvidenceFor(batch, chosen);
  evidence.simulated = false;
  const Band band = BandOf(evidence);
  nlohmann::json said = {{"allocated", prediction.outcome.allocated.bytes},
                         {"reserved", prediction.outcome.reserved.bytes},
                         {"allocated_band", {band.allocated_low, band.allocated_high}},
                         {"reserved_band", {band.reserved_low, band.reserved_high}}};
  if (!applied.empty()) {
    const auto real = BuildStream(applied, {});
    if (!real.ok()) return Fail(real.error().message);
    const Bytes least = LeastOf(real.value(), prediction.options);
    said["least"] = LeastOf(*prediction.stream, prediction.options);
    said["least_real"] = least;
    said["edges"] = Edges(least, prediction, band);
  }
  return Say(said);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  std::string applied;
  if (words.size() >= 2 && words[words.size() - 2] == "--edge") {
    applied = words.back();
    words.resize(words.size() - 2);
  }
  if (words.empty()) {
    fmt::print(stderr, "usage: technique_predict TRACE TECHNIQUE... [--edge TRACE]\n");
    return 2;
  }
  return Predict(words.front(), {words.begin() + 1, words.end()}, applied);
}
