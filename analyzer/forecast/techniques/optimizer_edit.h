#pragma once
// Another optimizer in place of the recorded one: what it keeps and what it needs for a moment is taken out,
// and put back parameter by parameter.

#include <string_view>
#include <vector>

#include "analyzer/forecast/edit.h"
#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// Parameters that the optimizer trains, each tensor once, in the order of the model.
[[nodiscard]] std::vector<ParameterId> TrainedParameters(const Stream& stream);

// Where the optimizer of each completed step runs: right before event `place`.
struct OptimizerPlace {
  uint32_t step = 0;
  uint32_t place = 0;
  bool first = false;  // the state is made here
};
// Empty where no step was completed.
[[nodiscard]] std::vector<OptimizerPlace> OptimizerPlaces(const Stream& stream);

class OptimizerEdit {
 public:
  explicit OptimizerEdit(const Stream& stream);

  [[nodiscard]] const Stream& stream() const { return edit_.base(); }
  [[nodiscard]] const std::vector<OptimizerPlace>& places() const { return places_; }
  [[nodiscard]] const std::vector<ParameterId>& trained() const { return trained_; }
  [[nodiscard]] Edit& edit() { return edit_; }

  // Takes out what the optimizer allocates in its steps, and its state wherever it was made.
  void RemoveTemporaries();
  void RemoveState();

  // Bytes that stay. `key` is for people: "exp_avg".
  void AddState(const OptimizerPlace& at, ParameterId parameter, Bytes bytes, std::string_view key);
  RequestId Take(const OptimizerPlace& at, Bytes bytes);
  void Give(const OptimizerPlace& at, RequestId id) { edit_.FreeBefore(id, at.place); }
  [[nodiscard]] Stream Finish() &&;

 private:
  Edit edit_;
  std::vector<OptimizerPlace> places_;
  std::vector<ParameterId> trained_;
  std::vector<std::string> keys_;
  SiteId site_;
};

}  // namespace vramtrace::forecast
