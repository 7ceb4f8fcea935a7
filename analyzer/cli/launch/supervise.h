#pragma once
// Waits for the command, in one thread: its end, signals, the time-out, the host's memory, the guard's
// questions.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/host_memory.h"
#include "analyzer/cli/launch/overwrite_guard.h"

namespace vramtrace::launch {

// Why the wrapper, and not the program, ended the run.
struct TimedOut {
  std::chrono::milliseconds after{};
};
struct LeftRunning {  // the command ended, processes that it started did not
  int processes = 0;
};
using Stop = std::variant<TimedOut, Overwrite, HostMemoryWatch::Shortage, LeftRunning>;

struct SuperviseOptions {
  std::optional<std::chrono::milliseconds> time_out = std::nullopt;
  OverwriteGuard* guard = nullptr;
  HostMemoryWatch* host_memory = nullptr;
  // Wait for processes that outlive the command too, and end them with it when it is stopped. Makes the
  // wrapper their reaper. Those still there `patience` after the command's end are ended, unless
  // `still_wanted` says that the run is not over (a program that went to the background).
  bool whole_tree = false;
  std::chrono::milliseconds patience{5000};
  std::function<bool()> still_wanted = nullptr;
  // Called every so often while the command runs.
  std::function<void()> tick = nullptr;
  std::chrono::milliseconds tick_every{100};
};

struct Ending {
  int wait_status = 0;  // of the command
  std::optional<Stop> stop;
};

// Call before Launch when `whole_tree` is used, so that no orphan is missed.
void AdoptOrphans();

[[nodiscard]] Ending Supervise(const Child& child, const SignalQueue& signals,
                               const SuperviseOptions& options);

}  // namespace vramtrace::launch
