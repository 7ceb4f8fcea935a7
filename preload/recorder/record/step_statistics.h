#pragma once
// What the step (or window) that runs takes on each device, counted while its events are written.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "preload/recorder/record/mapped_array.h"

namespace vramtrace::record {

// Bytes taken from the driver by calls that were recorded. One entry a live allocation, under a lock: driver
// calls take microseconds.
class DriverLedger {
 public:
  constexpr DriverLedger() = default;
  // Answers the device's sum.
  uint64_t Add(uint32_t device, uint64_t key, uint64_t bytes) noexcept;
  void Remove(uint64_t key) noexcept;
  void LockForFork() noexcept { mutex_.lock(); }
  void UnlockAfterFork() noexcept { mutex_.unlock(); }

  static constexpr size_t kDevices = 32;

 private:
  struct Entry {
    uint64_t key;  // 0: free
    uint64_t bytes;
    uint32_t device;
  };
  [[nodiscard]] Entry* Find(uint64_t key) noexcept;
  void Insert(const Entry& entry) noexcept;
  void Grow() noexcept;

  std::mutex mutex_;
  MappedArray<Entry> table_;
  size_t used_ = 0;
  std::array<uint64_t, kDevices> sums_{};
};

struct DeviceStep {
  bool used = false;
  uint64_t peak = 0;  // of the caching allocator, as it reports it
  uint64_t low = 0;
  uint64_t reserved = 0;
  uint64_t driver = 0;
  uint64_t retries = 0;
};

class StepStatistics {
 public:
  static constexpr size_t kDevices = DriverLedger::kDevices;

  constexpr StepStatistics() = default;

  // Events of a device come one at a time (its allocator's lock); a plain store suffices, and a reader that
  // runs at the same time is off by an event at worst.
  void Block(uint32_t device, uint64_t sequence, uint64_t allocated, uint64_t reserved) noexcept {
    if (device >= kDevices || allocated == UINT64_MAX) return;
    Counters& counters = counters_[device];
    if (allocated > counters.peak.load(std::memory_order_relaxed)) {
      counters.peak.store(allocated, std::memory_order_relaxed);
      counters.peak_sequence.store(sequence, std::memory_order_relaxed);
    }
    if (allocated + 1 < counters.low_plus_one.load(std::memory_order_relaxed) ||
        counters.low_plus_one.load(std::memory_order_relaxed) == 0) {
      counters.low_plus_one.store(allocated + 1, std::memory_order_relaxed);
    }
    if (reserved > counters.reserved.load(std::memory_order_relaxed)) {
      counters.reserved.store(reserved, std::memory_order_relaxed);
    }
  }
  void Driver(uint32_t device, uint64_t sum) noexcept;
  void Refused(uint32_t device) noexcept;
  void OutOfMemory() noexcept { out_of_memory_.store(true, std::memory_order_relaxed); }

  // What was counted until the event `last`, and starts anew. A peak behind it stays with the next step.
  [[nodiscard]] DeviceStep Take(uint32_t device, uint64_t last) noexcept;
  [[nodiscard]] bool TakeOutOfMemory() noexcept { return out_of_memory_.exchange(false); }

 private:
  struct Counters {
    std::atomic<uint64_t> peak{0};
    std::atomic<uint64_t> peak_sequence{0};
    std::atomic<uint64_t> low_plus_one{0};  // one more than the least; 0: nothing yet
    std::atomic<uint64_t> reserved{0};
    std::atomic<uint64_t> driver{0};
    std::atomic<uint64_t> retries{0};
  };
  std::array<Counters, kDevices> counters_{};
  std::atomic<bool> out_of_memory_{false};
};

}  // namespace vramtrace::record
