#pragma once
// Ids of the interned tables of a trace. Opaque, so that one table's id cannot index another. 0 is "none".

#include <cstdint>

namespace vramtrace::trace {

enum class StringId : uint32_t { kNone = 0 };
enum class CodeId : uint32_t { kNone = 0 };
enum class FrameId : uint32_t { kNone = 0 };
enum class StackId : uint32_t { kNone = 0 };
enum class BinaryId : uint32_t { kNone = 0 };
enum class ThreadId : uint32_t { kNone = 0 };
enum class DeviceIndex : uint32_t {};

template <typename Id>
[[nodiscard]] constexpr uint32_t Raw(Id id) {
  return static_cast<uint32_t>(id);
}

}  // namespace vramtrace::trace
