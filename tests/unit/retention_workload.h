#pragma once
// A training run of any length that is the same each time: once to be recorded, once to be counted by a
// referee that keeps everything.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace vramtrace::tests {

// One call of recorder.h. Its number in the trace is its place here, from 1.
struct WorkloadEvent {
  enum class Kind : uint8_t { kAllocate, kFree, kDriverAllocate, kDriverFree, kLabel, kStepBegin, kStepEnd };
  Kind kind{};
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t allocated = 0;  // sums after the event
  uint64_t reserved = 0;
  uint64_t step = 0;
  bool backward = false;  // comes from the thread that runs the backward pass
};

struct WorkloadSettings {
  uint64_t steps = 0;
  uint64_t highest_step = 0;  // the one with the highest peak
  uint64_t blocks = 200;      // that a step allocates
};

// Calls `emit` for every event; it answers whether to go on.
void RunWorkload(const WorkloadSettings& settings, const std::function<bool(const WorkloadEvent&)>& emit);

struct StepTruth {
  uint64_t first_event = 0;  // numbers
  uint64_t last_event = 0;
  uint64_t peak = 0;
  uint64_t low = UINT64_MAX;
};

struct RunTruth {
  uint64_t events = 0;
  uint64_t peak = 0;
  uint64_t peak_event = 0;
  uint64_t peak_step = 0;
  uint64_t last_block_event = 0;
  std::map<uint64_t, uint64_t> live_at_peak;  // number of the allocation by address
  std::map<uint64_t, uint64_t> live;          // at the end
  std::vector<StepTruth> steps;
};

// Of the first `events` events.
[[nodiscard]] RunTruth CountWorkload(const WorkloadSettings& settings, uint64_t events = UINT64_MAX);

// Calls the recorder for one event.
void RecordEvent(const WorkloadEvent& event);

}  // namespace vramtrace::tests
