#pragma once
// What a stub of the kind `kernel` calls (export_list.py): work on a library handle that is not done, because
// kernels do nothing on the simulated device.

#include <cstdint>

namespace vramtrace::simulator {

// Defined by each library that lists such functions. `handle` is the function's first argument. Checks the
// handle, counts the call, adds a node to the graph that the handle's stream captures, and returns a status
// of the library.
[[nodiscard]] uint64_t LaunchFor(void* handle, const char* function);

}  // namespace vramtrace::simulator
