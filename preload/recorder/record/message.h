#pragma once
// The recorder's voice: whole lines on stderr, without stdio's buffers or locks.

namespace vramtrace::record {

// One line, "vramtrace: " in front. printf format; cut at 1000 bytes. Keeps errno.
void Say(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace vramtrace::record
