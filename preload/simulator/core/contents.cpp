#include "preload/simulator/core/contents.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/options.h"
#include "preload/simulator/core/report.h"
#include "preload/simulator/core/state.h"
#include "preload/simulator/core/values.h"
#include "preload/simulator/core/work_clock.h"

namespace vramtrace::simulator {
namespace {

using report::Count;

// Once the store is full, values are still kept where they are most likely to be read back.
constexpr uint64_t kAlwaysStored = 64u << 10;

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }
uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool MayStore(const State& state, uint64_t bytes) {
  const Options& options = CurrentOptions();
  if (bytes > options.copy_limit_bytes) return false;
  return bytes <= kAlwaysStored || state.stored.stored_bytes() + bytes <= options.store_limit_bytes;
}

bool StoreBytes(State& state, uint64_t destination, const void* source, uint64_t bytes) {
  if (!state.addresses.Commit(destination, bytes)) return false;
  std::memcpy(Pointer(destination), source, bytes);
  state.stored.Mark(destination, bytes);
  MarkInvented(state, destination, bytes, false);
  return true;
}

// Reads stored bytes, zero elsewhere. True when every byte had been stored.
bool ReadBytes(State& state, void* destination, uint64_t source, uint64_t bytes) {
  uint64_t stored = 0;
  auto* out = static_cast<char*>(destination);
  uint64_t position = source;
  state.stored.ForEach(source, bytes, [&](uint64_t begin, uint64_t end) {
    std::memset(out + (position - source), 0, begin - position);
    std::memcpy(out + (begin - source), Pointer(begin), end - begin);
    stored += end - begin;
    position = end;
  });
  std::memset(out + (position - source), 0, source + bytes - position);
  return stored == bytes;
}

bool HasInvention(const State& state, uint64_t address, uint64_t bytes) {
  bool found = false;
  state.invented.ForEach(address, bytes, [&](uint64_t, uint64_t) { found = true; });
  return found;
}

// The runs of one kind of bytes in a range. Collected, because storing changes the map that ForEach walks.
std::vector<std::pair<uint64_t, uint64_t>> RunsOf(const StoredBytes& kind, uint64_t address, uint64_t bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  kind.ForEach(address, bytes, [&](uint64_t begin, uint64_t end) { runs.emplace_back(begin, end); });
  return runs;
}

void CountUnstored(uint64_t bytes) {
  report::Add(Count::kUnstoredCopies);
  report::Add(Count::kUnstoredBytes, bytes);
}

void CopyWithin(State& state, uint64_t destination, uint64_t source, uint64_t bytes) {
  report::Add(Count::kDeviceToDeviceCopies);
  if (bytes > CurrentOptions().copy_limit_bytes) {
    ForgetStored(state, destination, bytes);
    return;
  }
  bool overlap = destination < source + bytes && source < destination + bytes;
  const auto invented = RunsOf(state.invented, source, bytes);
  if (overlap) {
    std::string through(bytes, '\0');
    ReadBytes(state, through.data(), source, bytes);
    ForgetStored(state, destination, bytes);
    StoreBytes(state, destination, through.data(), bytes);
  } else {
    ForgetStored(state, destination, bytes);
    for (auto [begin, end] : RunsOf(state.stored, source, bytes)) {
      StoreBytes(state, destination + (begin - source), Pointer(begin), end - begin);
    }
  }
  for (auto [begin, end] : invented) MarkInvented(state, destination + (begin - source), end - begin, true);
}

void CopyIn(State& state, uint64_t destination, const void* source, uint64_t bytes) {
  report::Add(Count::kHostToDeviceCopies);
  report::Add(Count::kHostToDeviceBytes, bytes);
  if (MayStore(state, bytes) && StoreBytes(state, destination, source, bytes)) return;
  CountUnstored(bytes);
  ForgetStored(state, destination, bytes);
}

void CopyOut(State& state, void* destination, uint64_t source, uint64_t bytes) {
  report::Add(Count::kDeviceToHostCopies);
  report::Add(Count::kDeviceToHostBytes, bytes);
  const bool stored = ReadBytes(state, destination, source, bytes);
  if (stored && !HasInvention(state, source, bytes)) return;
  bool known = false;
  if (TakeCount(destination, bytes, stored, &known) && known) return;
  report::Add(Count::kInventedReads);
  report::Add(Count::kInventedBytes, bytes);
  if (bytes <= 64) Log("device to host: %lu bytes at 0x%lx were never stored", bytes, source);
}

}  // namespace

bool IsLive(State& state, uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  if (end < address) return false;
  while (address < end) {
    const auto* range = RangeOf(state, address);
    if (range == nullptr) return false;
    // Requests are rounded to the alignment by the driver, and programs use what the rounding gives them.
    uint64_t unit = range->second.charged != 0 ? kPageBytes : kAddressAlignment;
    address = range->first + (range->second.bytes + unit - 1) / unit * unit;
  }
  return true;
}

bool IsKnown(State& state, uint64_t address, uint64_t bytes) {
  uint64_t stored = 0;
  state.stored.ForEach(address, bytes, [&](uint64_t begin, uint64_t end) { stored += end - begin; });
  return stored == bytes && !HasInvention(state, address, bytes);
}

void MarkInvented(State& state, uint64_t address, uint64_t bytes, bool invented) {
  if (invented) {
    state.invented.Mark(address, bytes);
  } else if (bytes != 0 && state.invented.stored_bytes() != 0) {
    constexpr uint64_t kSector = StoredBytes::kSector;
    uint64_t begin = (address + kSector - 1) / kSector * kSector;
    uint64_t end = (address + bytes + kSector - 1) / kSector * kSector;
    if (begin < end) state.invented.Unmark(begin, end - begin);
  }
}

void ForgetStored(State& state, uint64_t address, uint64_t bytes) {
  state.stored.ForEach(address, bytes, [](uint64_t begin, uint64_t end) {
    uint64_t first = (begin + kHostPage - 1) / kHostPage * kHostPage;
    uint64_t last = end / kHostPage * kHostPage;
    if (first >= last) {
      std::memset(Pointer(begin), 0, end - begin);
      return;
    }
    std::memset(Pointer(begin), 0, first - begin);
    std::memset(Pointer(last), 0, end - last);
    if (last - first >= 16 * kHostPage) {
      madvise(Pointer(first), last - first, MADV_DONTNEED);
    } else {
      std::memset(Pointer(first), 0,
                  last - first);  // cheaper than the call, and the page is soon stored again
    }
  });
  state.stored.Unmark(address, bytes);
  MarkInvented(state, address, bytes, false);
}

Status Copy(void* destination, const void* source, uint64_t bytes) {
  if (Forked()) return Status::kForked;
  if (bytes == 0) return Status::kOk;
  if (ShouldFail(CallKind::kCopy)) return Status::kInjected;
  State& state = TheState();
  bool to_device = state.addresses.Contains(Address(destination));
  bool from_device = state.addresses.Contains(Address(source));
  if (!to_device && !from_device) {
    std::memmove(destination, source, bytes);
    return Status::kOk;
  }
  std::lock_guard lock(state.mutex);
  if (to_device && !IsLive(state, Address(destination), bytes)) return Status::kInvalidValue;
  if (from_device && !IsLive(state, Address(source), bytes)) return Status::kInvalidValue;
  WorkCopy(CurrentDevice(), to_device && from_device ? CopyPath::kWithin : CopyPath::kHostLink, bytes);
  if (to_device && from_device) {
    CopyWithin(state, Address(destination), Address(source), bytes);
  } else if (to_device) {
    CopyIn(state, Address(destination), source, bytes);
  } else {
    CopyOut(state, destination, Address(source), bytes);
  }
  return Status::kOk;
}

Status Copy2D(void* destination, uint64_t destination_pitch, const void* source, uint64_t source_pitch,
              uint64_t width, uint64_t height) {
  if (width > destination_pitch || width > source_pitch) return Status::kInvalidValue;
  for (uint64_t row = 0; row < height; ++row) {
    Status status = Copy(static_cast<char*>(destination) + row * destination_pitch,
                         static_cast<const char*>(source) + row * source_pitch, width);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

Status Fill(void* destination, uint32_t value, unsigned width, uint64_t count) {
  if (Forked()) return Status::kForked;
  if (width != 1 && width != 2 && width != 4) return Status::kInvalidValue;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, uint64_t{width}, &bytes)) return Status::kInvalidValue;
  if (bytes == 0) return Status::kOk;
  report::Add(Count::kFills);
  State& state = TheState();
  auto fill_at = [&](void* at) {
    for (uint64_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(at) + i * width, &value, width);
  };
  if (!state.addresses.Contains(Address(destination))) {
    fill_at(destination);
    return Status::kOk;
  }
  std::lock_guard lock(state.mutex);
  if (!IsLive(state, Address(destination), bytes)) return Status::kInvalidValue;
  uint32_t kept = width == 4 ? value : value & ((1u << (8 * width)) - 1);
  bool store = kept != 0 && MayStore(state, bytes) && state.addresses.Commit(Address(destination), bytes);
  if (!store) {
    ForgetStored(state, Address(destination), bytes);
    if (kept != 0) CountUnstored(bytes);
    return Status::kOk;
  }
  fill_at(destination);
  state.stored.Mark(Address(destination), bytes);
  MarkInvented(state, Address(destination), bytes, false);
  return Status::kOk;
}

Status Store(void* destination, const void* source, uint64_t bytes) {
  if (Forked()) return Status::kForked;
  State& state = TheState();
  if (!state.addresses.Contains(Address(destination))) {
    std::memmove(destination, source, bytes);
    return Status::kOk;
  }
  std::lock_guard lock(state.mutex);
  if (!IsLive(state, Address(destination), bytes)) return Status::kInvalidValue;
  return StoreBytes(state, Address(destination), source, bytes) ? Status::kOk : Status::kOutOfMemory;
}

Status StoreIfRoom(void* destination, const void* source, uint64_t bytes) {
  if (Forked()) return Status::kForked;
  State& state = TheState();
  if (!state.addresses.Contains(Address(destination))) return Status::kInvalidValue;
  std::lock_guard lock(state.mutex);
  if (!IsLive(state, Address(destination), bytes)) return Status::kInvalidValue;
  if (!MayStore(state, bytes) || !StoreBytes(state, Address(destination), source, bytes)) {
    ForgetStored(state, Address(destination), bytes);
  }
  return Status::kOk;
}

Status Peek(void* destination, const void* source, uint64_t bytes) {
  if (Forked()) return Status::kForked;
  State& state = TheState();
  if (!state.addresses.Contains(Address(source))) {
    std::memmove(destination, source, bytes);
    return Status::kOk;
  }
  std::lock_guard lock(state.mutex);
  if (!IsLive(state, Address(source), bytes)) return Status::kInvalidValue;
  ReadBytes(state, destination, Address(source), bytes);
  return Status::kOk;
}

void Clear(void* address, uint64_t bytes) {
  State& state = TheState();
  if (Forked() || bytes == 0 || !state.addresses.Contains(Address(address))) return;
  std::lock_guard lock(state.mutex);
  ForgetStored(state, Address(address), bytes);
}

}  // namespace vramtrace::simulator
