#include "analyzer/viewer_data/observer.h"

#include <algorithm>

namespace vramtrace::viewer_data {

void Observer::See(const trace::Event& event, const timeline::Applied& applied, Tick tick) {
  ticks_ = tick + 1;
  for (Mark& mark : marks_) {
    if (mark.tick == kNever && mark.sequence == event.sequence && mark.device == applied.device_index) {
      mark.tick = tick;
    }
  }
  const timeline::DeviceMemory& memory = applied.device->memory;
  uint64_t& reserved = reserved_[applied.device_index];
  segments_.Add(event, applied, reserved, tick);
  reserved = memory.reserved();
  const auto step = static_cast<uint32_t>(applied.instant.step);
  if (step_number_.empty() || step_number_.back() != step) {
    step_tick_.push_back(tick);
    step_number_.push_back(step);
  }
  CurvePoint point;
  point.tick = tick;
  point.time_ns = applied.instant.time_ns - std::min(applied.instant.time_ns, first_time_ns_);
  point.allocated = memory.allocated();
  point.reserved = memory.reserved();
  if (const auto used = memory.device_used()) point.used = static_cast<double>(*used);
  point.step = applied.instant.step;
  point.phase = applied.instant.phase;
  curves_[applied.device_index].Add(point);
}

void Observer::Finish(std::map<uint32_t, timeline::DeviceState>& devices) { segments_.Finish(devices); }

void Observer::WriteSteps(Columns* columns) const {
  columns->Add("step.tick", step_tick_);
  columns->Add("step.number", step_number_);
}

}  // namespace vramtrace::viewer_data
