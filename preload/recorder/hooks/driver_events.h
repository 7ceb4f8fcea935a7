#pragma once
// The body that all allocation and free hooks share: what is done before and after the real call.

#include <cstdint>
#include <ctime>

#include "preload/recorder/hooks/call_scope.h"
#include "preload/recorder/hooks/hook_list.h"
#include "preload/recorder/record/recorder.h"

namespace vramtrace::hooks {

enum class Space { kDevice, kHost };

// A call of an allocation or free function, as its hook sees it.
struct DriverCall {
  Hook hook;
  const void* caller;  // return address of the hook
  Space space = Space::kDevice;
  record::MemoryKind kind = record::MemoryKind::kDevice;
  uint64_t stream = 0;
  int device = -1;  // where the call names it; else the current one
};

// What an allocation brought.
struct Allocated {
  uint64_t address;
  uint64_t bytes;
};

void BeforeAllocation(const DriverCall& call) noexcept;
void AfterAllocation(const DriverCall& call, Allocated allocated, uint32_t result,
                     uint64_t duration_ns) noexcept;
void BeforeFree(const DriverCall& call, uint64_t address) noexcept;
void AfterFree(const DriverCall& call, uint32_t result) noexcept;
void AfterTrim(const DriverCall& call, uint32_t result) noexcept;

[[nodiscard]] inline uint64_t NowNs() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Calls `real` and records the outermost call. `outcome(succeeded)` tells address and bytes afterwards; for a
// failed call it tells the bytes that were asked for.
template <typename Real, typename Outcome>
auto RecordAllocation(const DriverCall& call, Real real, Outcome outcome) {
  const CallScope scope;
  if (!scope.outermost()) return real();
  {
    const KeepErrno keep;
    BeforeAllocation(call);
  }
  const uint64_t begin = NowNs();
  const auto result = real();
  const KeepErrno keep;
  AfterAllocation(call, outcome(static_cast<int>(result) == 0), static_cast<uint32_t>(result),
                  NowNs() - begin);
  return result;
}

// Records the free, then calls `real`: in between another thread could be handed the same address.
template <typename Real>
auto RecordFree(const DriverCall& call, uint64_t address, Real real) {
  const CallScope scope;
  if (!scope.outermost() || address == 0) return real();
  {
    const KeepErrno keep;
    BeforeFree(call, address);
  }
  const auto result = real();
  const KeepErrno keep;
  AfterFree(call, static_cast<uint32_t>(result));
  return result;
}

// Calls `real`, which gives back memory that no allocation holds: how much, only the device knows.
template <typename Real>
auto RecordTrim(const DriverCall& call, Real real) {
  const CallScope scope;
  const auto result = real();
  if (!scope.outermost()) return result;
  const KeepErrno keep;
  AfterTrim(call, static_cast<uint32_t>(result));
  return result;
}

}  // namespace vramtrace::hooks
