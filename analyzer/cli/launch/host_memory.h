#pragma once
// Watches the host's memory under a dry run: a model built on the CPU that will not fit is stopped with
// advice before the kernel kills it, or something else in its place.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vramtrace::launch {

// What the machine, or the control group that holds us, still has.
struct HostRoom {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // without swapping or killing
  bool is_group_limit = false;   // a control group's limit is the tighter one
};

// From /proc/meminfo and the memory controller (version 2 or 1) of this process and its parents. Nothing
// where /proc is not there. `root` is put before every path, for tests.
[[nodiscard]] std::optional<HostRoom> ReadHostRoom(const std::string& root = "");

// What must stay free: 3 % of the memory, between 64 MiB and 1 GiB. At 2 GB/s, the fastest that one thread
// was seen to touch new pages, that is half a second on a machine of 32 GiB.
[[nodiscard]] uint64_t HostReserve(uint64_t total_bytes);

class HostMemoryWatch {
 public:
  // `limit_bytes`: what the program may use; without it, what the machine has less the reserve.
  explicit HostMemoryWatch(std::optional<uint64_t> limit_bytes) : limit_bytes_(limit_bytes) {}

  struct Shortage {
    uint64_t used_bytes = 0;   // by the program and its children
    uint64_t limit_bytes = 0;  // what it could have had
    bool is_group_limit = false;
    bool is_asked = false;  // the user's own limit
  };
  // Looks once at the descendants of `wrapper`. A shortage that others made, while the program holds less
  // than what is missing, is not its fault and not reported.
  [[nodiscard]] std::optional<Shortage> Look(pid_t wrapper);

  // When to look again: sooner, the less room there is.
  [[nodiscard]] std::chrono::milliseconds Pause() const { return pause_; }
  [[nodiscard]] uint64_t PeakBytes() const { return peak_bytes_; }

 private:
  std::optional<uint64_t> limit_bytes_;
  std::chrono::milliseconds pause_{50};
  uint64_t peak_bytes_ = 0;
};

}  // namespace vramtrace::launch
