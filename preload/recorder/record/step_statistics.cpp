#include "preload/recorder/record/step_statistics.h"

#include <algorithm>

namespace vramtrace::record {
namespace {

uint64_t Home(uint64_t key) { return (key * 0x9e3779b97f4a7c15U) >> 20; }

}  // namespace

// ------------------------------------------------------------------------------------------------- ledger

DriverLedger::Entry* DriverLedger::Find(uint64_t key) noexcept {
  if (table_.Size() == 0) return nullptr;
  const size_t mask = table_.Size() - 1;
  for (size_t i = Home(key) & mask; table_[i].key != 0; i = (i + 1) & mask) {
    if (table_[i].key == key) return &table_[i];
  }
  return nullptr;
}

void DriverLedger::Insert(const Entry& entry) noexcept {
  const size_t mask = table_.Size() - 1;
  size_t i = Home(entry.key) & mask;
  while (table_[i].key != 0) i = (i + 1) & mask;
  table_[i] = entry;
}

void DriverLedger::Grow() noexcept {
  MappedArray<Entry> old = table_;
  table_ = {};
  if (!table_.Reset(old.Size() == 0 ? 256 : 2 * old.Size())) {
    table_ = old;
    return;
  }
  for (const Entry& entry : old) {
    if (entry.key != 0) Insert(entry);
  }
  old.Free();
}

uint64_t DriverLedger::Add(uint32_t device, uint64_t key, uint64_t bytes) noexcept {
  if (device >= kDevices || key == 0) return 0;
  const std::lock_guard lock(mutex_);
  if (Entry* const stale = Find(key); stale != nullptr) {  // its free was not seen
    sums_[stale->device] -= stale->bytes;
    *stale = {key, bytes, device};
    return sums_[device] += bytes;
  }
  if ((used_ + 1) * 4 > table_.Size() * 3) Grow();
  if (used_ + 1 >= table_.Size()) return sums_[device];
  Insert({key, bytes, device});
  ++used_;
  return sums_[device] += bytes;
}

void DriverLedger::Remove(uint64_t key) noexcept {
  const std::lock_guard lock(mutex_);
  Entry* const found = Find(key);
  if (found == nullptr) return;
  sums_[found->device] -= found->bytes;
  const size_t mask = table_.Size() - 1;
  auto hole = static_cast<size_t>(found - table_.begin());
  for (size_t i = (hole + 1) & mask; table_[i].key != 0; i = (i + 1) & mask) {
    const size_t home = Home(table_[i].key) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = {};
  --used_;
}

// --------------------------------------------------------------------------------------------------- step

void StepStatistics::Driver(uint32_t device, uint64_t sum) noexcept {
  if (device >= kDevices) return;
  uint64_t most = counters_[device].driver.load(std::memory_order_relaxed);
  while (sum > most && !counters_[device].driver.compare_exchange_weak(most, sum)) {
  }
}

void StepStatistics::Refused(uint32_t device) noexcept {
  if (device < kDevices) counters_[device].retries.fetch_add(1, std::memory_order_relaxed);
}

DeviceStep StepStatistics::Take(uint32_t device, uint64_t last) noexcept {
  Counters& counters = counters_[device];
  DeviceStep step;
  const uint64_t low = counters.low_plus_one.exchange(0);
  step.peak = counters.peak.load();
  // Another thread has gone on already: its peak is the next step's as well.
  if (counters.peak_sequence.load() <= last) counters.peak.store(0);
  step.low = low == 0 ? 0 : low - 1;
  step.reserved = counters.reserved.exchange(0);
  step.driver = counters.driver.exchange(0);
  step.retries = counters.retries.exchange(0);
  step.used = low != 0 || step.driver != 0 || step.retries != 0;
  return step;
}

}  // namespace vramtrace::record
