#include "preload/recorder/record/step_summaries.h"

#include <algorithm>

namespace vramtrace::record {

void StepSummaries::Start(uint64_t max_bytes) noexcept {
  // A summary takes up to 64 bytes: a doubling of steps takes a sixty-fourth of the file at most.
  constexpr uint64_t kMost = 65536;
  if (max_bytes != 0) each_ = std::clamp<uint64_t>(max_bytes / 4096, 256, kMost);
}

void StepSummaries::Add(uint64_t number, uint64_t last, uint64_t time_ns, const Retention::EndedStep& step,
                        Tables* tables) noexcept {
  const std::lock_guard lock(mutex_);
  for (uint32_t device = 0; device < StepStatistics::kDevices; ++device) {
    const DeviceStep& counted = step.devices[device];
    trace::StepSummaryPacket& summary = pending_[device];
    if (!counted.used && summary.steps == 0) continue;
    if (summary.steps == 0) summary = {.first_step = number, .device = device, .low = UINT64_MAX};
    summary.steps = number + 1 - summary.first_step;
    summary.peak = std::max(summary.peak, counted.peak);
    if (counted.used) summary.low = std::min(summary.low, counted.low);
    summary.reserved = std::max(summary.reserved, counted.reserved);
    summary.driver = std::max(summary.driver, counted.driver);
    summary.retries += counted.retries;
    summary.events += step.events;
    summary.end_time_ns = time_ns;
    summary.last_sequence = last;
    if (summary.steps < group_) continue;
    if (summary.low == UINT64_MAX) summary.low = 0;
    [[maybe_unused]] const bool written = tables->Write(summary);
    summary = {};
    if (++written_ % each_ == 0) group_ *= 2;
  }
}

}  // namespace vramtrace::record
