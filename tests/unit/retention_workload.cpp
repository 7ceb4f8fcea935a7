#include "tests/unit/retention_workload.h"

#include <algorithm>
#include <random>

namespace vramtrace::tests {
namespace {

using Kind = WorkloadEvent::Kind;

class Run {
 public:
  Run(const WorkloadSettings& settings, const std::function<bool(const WorkloadEvent&)>& emit)
      : settings_(settings), emit_(emit) {}

  void All() {
    for (int i = 0; i < 40; ++i) weights_.push_back(Allocate(4096 + 512 * Random(64), false));
    for (uint64_t step = 0; step < settings_.steps && going_; ++step) Step(step);
  }

 private:
  void Step(uint64_t step) {
    step_ = step;
    std::vector<uint64_t> saved;
    const uint64_t blocks = settings_.blocks + (step == settings_.highest_step ? settings_.blocks : step % 7);
    for (uint64_t i = 0; i < blocks && going_; ++i) {
      const uint64_t block = Allocate(512 * (1 + Random(100)), false);
      if (Random(3) == 0) {
        Free(block, false);
      } else {
        saved.push_back(block);
      }
    }
    for (const uint64_t gradient : gradients_) Free(gradient, true);  // of the step before
    gradients_.clear();
    while (!saved.empty() && going_) {
      Free(saved.back(), true);
      saved.pop_back();
      if (gradients_.size() < weights_.size()) gradients_.push_back(Allocate(4096, true));
    }
    // Something that comes and goes over many steps.
    if (step % 5 == 0) {
      weights_.push_back(Allocate(512 * (1 + Random(20)), false));
      Emit({.kind = Kind::kLabel, .address = weights_.back(), .bytes = 512});
    }
    if (step % 5 == 3 && weights_.size() > 40) {
      Free(weights_.back(), false);
      weights_.pop_back();
    }
    if (step % 11 == 0)
      Emit({.kind = Kind::kDriverAllocate, .address = 0x500000000000 + step * 4096, .bytes = 4096});
    if (step % 11 == 7) {
      Emit({.kind = Kind::kDriverFree, .address = 0x500000000000 + (step - 7) * 4096, .bytes = 0});
    }
    Emit({.kind = Kind::kStepBegin});
    Emit({.kind = Kind::kStepEnd});
  }

  uint64_t Random(uint64_t below) { return random_() % below; }

  uint64_t Allocate(uint64_t bytes, bool backward) {
    // Addresses are used again, the newest first, as an allocator does.
    uint64_t address = 0;
    if (free_.empty()) {
      address = 0x7f0000000000 + (next_address_++ * (1U << 20));
    } else {
      address = free_.back();
      free_.pop_back();
    }
    bytes_[address] = bytes;
    allocated_ += bytes;
    reserved_ = std::max(reserved_, (allocated_ + (1U << 21)) >> 21 << 21);
    Emit({.kind = Kind::kAllocate, .address = address, .bytes = bytes, .backward = backward});
    return address;
  }

  void Free(uint64_t address, bool backward) {
    const uint64_t bytes = bytes_[address];
    allocated_ -= bytes;
    free_.push_back(address);
    Emit({.kind = Kind::kFree, .address = address, .bytes = bytes, .backward = backward});
  }

  void Emit(WorkloadEvent event) {
    if (!going_) return;
    event.allocated = allocated_;
    event.reserved = reserved_;
    event.step = step_;
    going_ = emit_(event);
  }

  WorkloadSettings settings_;
  const std::function<bool(const WorkloadEvent&)>& emit_;
  std::mt19937 random_{7};  // always the same
  std::vector<uint64_t> weights_;
  std::vector<uint64_t> gradients_;
  std::vector<uint64_t> free_;
  std::map<uint64_t, uint64_t> bytes_;
  uint64_t next_address_ = 0;
  uint64_t allocated_ = 0;
  uint64_t reserved_ = 0;
  uint64_t step_ = 0;
  bool going_ = true;
};

}  // namespace

void RunWorkload(const WorkloadSettings& settings, const std::function<bool(const WorkloadEvent&)>& emit) {
  Run(settings, emit).All();
}

RunTruth CountWorkload(const WorkloadSettings& settings, uint64_t events) {
  RunTruth truth;
  std::map<uint64_t, uint64_t> live;
  StepTruth step{.first_event = 1};
  RunWorkload(settings, [&](const WorkloadEvent& event) {
    if (truth.events == events) return false;
    ++truth.events;
    if (event.kind == Kind::kAllocate) live[event.address] = truth.events;
    if (event.kind == Kind::kFree) live.erase(event.address);
    if (event.kind == Kind::kAllocate || event.kind == Kind::kFree) {
      step.peak = std::max(step.peak, event.allocated);
      step.low = std::min(step.low, event.allocated);
      truth.last_block_event = truth.events;
    }
    if (event.allocated > truth.peak) {
      truth.peak = event.allocated;
      truth.peak_event = truth.events;
      truth.peak_step = event.step;
    }
    if (event.kind == Kind::kStepEnd) {
      step.last_event = truth.events;
      truth.steps.push_back(step);
      step = {.first_event = truth.events + 1};
    }
    return true;
  });
  truth.live = live;
  live.clear();
  uint64_t number = 0;
  RunWorkload(settings, [&](const WorkloadEvent& event) {
    if (number == truth.peak_event) return false;
    ++number;
    if (event.kind == Kind::kAllocate) live[event.address] = number;
    if (event.kind == Kind::kFree) live.erase(event.address);
    return true;
  });
  truth.live_at_peak = live;
  return truth;
}

}  // namespace vramtrace::tests
