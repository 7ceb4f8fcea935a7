#pragma once

#include <cstdint>
#include <string>

namespace vramtrace::trace {

// Does process `pid` of this machine have the file mapped? A recorder does until it ends. False when it
// cannot be told (another user's process, another machine's trace).
[[nodiscard]] bool IsMappedBy(uint32_t pid, const std::string& path);

}  // namespace vramtrace::trace
