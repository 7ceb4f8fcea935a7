#pragma once
// The peak after a change, by replays of the recorded run.

#include <memory>
#include <string>

#include "analyzer/diagnose/finding.h"
#include "analyzer/forecast/planner.h"

namespace vramtrace::diagnose {

// Replays are made only when a remedy asks for one.
class Predictor {
 public:
  explicit Predictor(const Evidence& evidence) : evidence_(evidence) {}

  // Predicts each remedy that can be, and moves those that are on already, or do not help, or leave the run
  // above its card, to `cannot`.
  void Weigh(Finding* finding);

 private:
  forecast::Planner* planner();
  // False: the remedy is no advice; the reason is in `why` where it is worth a line.
  bool Predict(Remedy* remedy, std::string* why);
  [[nodiscard]] Predicted Judge(const forecast::Stream& stream, const forecast::ReplayOptions& options);

  const Evidence& evidence_;
  bool tried_ = false;
  std::shared_ptr<forecast::Planner> planner_;
};

}  // namespace vramtrace::diagnose
