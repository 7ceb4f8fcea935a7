#pragma once
// What device memory holds. Nothing is backed until it is stored: a page that no copy or fill reached reads
// as zero. Copies larger than VRAMTRACE_SIM_COPY_LIMIT are accounted and not stored (the destination then
// reads as zero), so that a model of any size runs in a small host. Each side of a copy is device or host by
// its address.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

// kInvalidValue when a device side is not inside live memory.
VRAMTRACE_SIM_EXPORT Status Copy(void* destination, const void* source, uint64_t bytes);
VRAMTRACE_SIM_EXPORT Status Copy2D(void* destination, uint64_t destination_pitch, const void* source,
                                   uint64_t source_pitch, uint64_t width, uint64_t height);
// `count` elements of `width` bytes (1, 2 or 4), each the low bytes of `value`.
VRAMTRACE_SIM_EXPORT Status Fill(void* destination, uint32_t value, unsigned width, uint64_t count);

// Stores `bytes` of computed values whatever the limit says (small: results a stand-in really has).
VRAMTRACE_SIM_EXPORT Status Store(void* destination, const void* source, uint64_t bytes);
// The same where the limits of copies allow it; otherwise the range reads as zero, and is unknown.
VRAMTRACE_SIM_EXPORT Status StoreIfRoom(void* destination, const void* source, uint64_t bytes);
// Reads device bytes without counting a device-to-host read.
VRAMTRACE_SIM_EXPORT Status Peek(void* destination, const void* source, uint64_t bytes);

// Forgets what a range held: it reads as zero.
VRAMTRACE_SIM_EXPORT void Clear(void* address, uint64_t bytes);

}  // namespace vramtrace::simulator
