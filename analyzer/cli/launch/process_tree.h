#pragma once
// The processes below the wrapper, read from /proc.

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace vramtrace::launch {

// Every living descendant of `ancestor`, parents before children. Zombies are not listed.
[[nodiscard]] std::vector<pid_t> Descendants(pid_t ancestor);

// Sends a signal to every descendant, children of the last ones made while we looked included.
void SignalDescendants(pid_t ancestor, int signal_number);

// Memory that belongs to the process alone or is shared memory it touched, in bytes: resident anonymous,
// shared and swapped pages, without file pages, which the kernel can drop. 0 when the process is gone.
[[nodiscard]] uint64_t HostBytes(pid_t process);

}  // namespace vramtrace::launch
