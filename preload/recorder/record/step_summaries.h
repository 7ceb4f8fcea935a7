#pragma once
// A StepSummary for each step and device, in the chunks that are never dropped. A run of weeks would fill the
// file with them too: each time kEach of them are written, the number of steps that one is of doubles.

#include <array>
#include <cstdint>
#include <mutex>

#include "preload/recorder/record/retention.h"
#include "preload/recorder/record/tables.h"
#include "preload/trace/packets.h"

namespace vramtrace::record {

class StepSummaries {
 public:
  constexpr StepSummaries() = default;

  void Start(uint64_t max_bytes) noexcept;
  void Add(uint64_t number, uint64_t last, uint64_t time_ns, const Retention::EndedStep& step,
           Tables* tables) noexcept;

  void LockForFork() noexcept { mutex_.lock(); }
  void UnlockAfterFork() noexcept { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  uint64_t each_ = 65536;
  uint64_t written_ = 0;
  uint64_t group_ = 1;  // steps that one summary is of
  std::array<trace::StepSummaryPacket, StepStatistics::kDevices> pending_{};
};

}  // namespace vramtrace::record
