#pragma once
// What the one pass over a trace's events collects besides the lives of blocks: the curve of each device,
// what was taken from the driver, where steps begin, and where instants lie.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/attribution/lives.h"
#include "analyzer/viewer_data/curve.h"
#include "analyzer/viewer_data/segments.h"

namespace vramtrace::viewer_data {

// An instant that the report speaks of.
struct Mark {
  uint32_t device = 0;
  std::string kind;  // peak, peak_reserved, peak_used, out_of_memory
  uint64_t sequence = 0;
  Tick tick = kNever;  // of the event with that sequence number
};

class Observer final : public attribution::LivesObserver {
 public:
  // `first_time_ns`: where the time axis begins.
  Observer(uint64_t first_time_ns, std::vector<Mark> marks)
      : first_time_ns_(first_time_ns), marks_(std::move(marks)) {}

  void See(const trace::Event& event, const timeline::Applied& applied, Tick tick) override;
  void Finish(std::map<uint32_t, timeline::DeviceState>& devices) override;

  [[nodiscard]] const std::vector<Mark>& marks() const { return marks_; }
  [[nodiscard]] std::map<uint32_t, Curve>& curves() { return curves_; }
  [[nodiscard]] const std::map<uint32_t, Curve>& curves() const { return curves_; }
  [[nodiscard]] const SegmentLives& segments() const { return segments_; }
  [[nodiscard]] Tick ticks() const { return ticks_; }
  // Columns "step.*": the ticks at which another step is under way, and which.
  void WriteSteps(Columns* columns) const;

 private:
  uint64_t first_time_ns_;
  std::vector<Mark> marks_;
  std::map<uint32_t, Curve> curves_;
  std::map<uint32_t, uint64_t> reserved_;
  SegmentLives segments_;
  std::vector<uint32_t> step_tick_, step_number_;
  Tick ticks_ = 0;
};

}  // namespace vramtrace::viewer_data
