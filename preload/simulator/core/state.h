#pragma once
// The state behind the core's functions, for the core alone. It is made at the first use and never destroyed:
// programs free device memory from static destructors.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "preload/simulator/core/address_space.h"
#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/core/stored_bytes.h"

namespace vramtrace::simulator {

inline constexpr uint64_t kHostPage = 4096;

struct RangeEntry {
  uint64_t bytes = 0;    // as asked for
  uint64_t charged = 0;  // whole pages; 0 when the request shares one
  int device = 0;
  RangeKind kind = RangeKind::kDevice;
};

// A 2 MiB page that small requests share.
struct SharedPage {
  int device = 0;
  int live = 0;
  std::map<uint64_t, uint64_t> free;  // offset -> bytes
};

struct DeviceBook {
  std::atomic<bool> has_context{false};
  uint64_t used = 0;
  uint64_t peak = 0;
  uint64_t outside = 0;
  uint64_t refused = 0;
  uint64_t largest_refused = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> owners;  // owner -> bytes now, peak
};

struct State {
  std::mutex mutex;  // guards everything below
  AddressSpace addresses;
  StoredBytes stored;
  StoredBytes invented;          // of the stored ones, those that nobody knew (values.h)
  std::deque<DeviceBook> books;  // one a visible device
  std::map<uint64_t, RangeEntry> ranges;
  std::map<uint64_t, SharedPage> shared_pages;
};

State& TheState();

// With the mutex held. Charge is false when the card's total would be exceeded; the refusal is recorded.
bool Charge(State& state, int device, uint64_t bytes, const char* what);
void Uncharge(State& state, int device, uint64_t bytes);
const std::pair<const uint64_t, RangeEntry>* RangeOf(State& state, uint64_t address);

// Every byte of the range is in live device memory; neighbouring mappings count as one.
bool IsLive(State& state, uint64_t address, uint64_t bytes);
// Every byte of it is stored and none invented.
bool IsKnown(State& state, uint64_t address, uint64_t bytes);
// Says it of each sector that begins in the range, and of the one that holds its first byte.
void MarkInvented(State& state, uint64_t address, uint64_t bytes, bool invented);

// Forgets what a range held: its bytes are zero and its pages unbacked.
void ForgetStored(State& state, uint64_t address, uint64_t bytes);

// In a child forked after the first context.
void MarkForked();

// What every function asks first: a good device, no fork behind us, a context.
Status Ready(int device);

}  // namespace vramtrace::simulator
