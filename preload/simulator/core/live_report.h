#pragma once
// <report>.live: the peaks of a process that is still running, or that ended without its exit handlers
// (killed, os._exit). One page, mapped shared; every field is little-endian and written by one aligned store,
// so a reader never sees half a number. It is removed when the report itself has been written.

#include <cstdint>

namespace vramtrace::simulator {

inline constexpr uint64_t kLiveReportMagic = 0x314b505453524d56;  // "VMRSTPK1" on disk
inline constexpr uint32_t kLiveReportVersion = 1;
inline constexpr int kLiveReportDevices = 60;

struct LiveDevice {
  uint64_t total_bytes = 0;  // 0: the device was not used
  uint64_t context_bytes = 0;
  uint64_t used_bytes = 0;  // now, context included
  uint64_t peak_used_bytes = 0;
  uint64_t refused_allocations = 0;
  uint64_t largest_refused_bytes = 0;
  uint64_t reserved[2] = {};
};
static_assert(sizeof(LiveDevice) == 64);

struct LiveReport {
  uint64_t magic = kLiveReportMagic;
  uint32_t version = kLiveReportVersion;
  uint32_t process_id = 0;
  uint32_t device_count = 0;  // entries of `devices`; those with total_bytes 0 were not used
  uint32_t reserved_small = 0;
  uint64_t reserved[29] = {};
  LiveDevice devices[kLiveReportDevices];
};
static_assert(sizeof(LiveReport) == 4096);

}  // namespace vramtrace::simulator
