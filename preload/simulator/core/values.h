#pragma once
// Values that a kernel should have computed, supplied by somebody who knows them: the value rules of the
// runtime (cudart/value_rules.h) and the value shadow in the program's interpreter (preload/python/values).
//
// Bytes of the device are in one of three states, by the sector of 512 B:
//   unstored   nobody wrote them; they read as zero
//   known      copied, filled or computed from known bytes
//   invented   stored, but computed from bytes that nobody knew: a policy chose them
// A host that reads unstored or invented bytes reads an invention; the report counts and names such reads.

#include <cstdint>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

enum class Knowledge : int { kNotLive = -1, kInvented = 0, kKnown = 1 };
[[nodiscard]] VRAMTRACE_SIM_EXPORT Knowledge KnowledgeOf(uint64_t address, uint64_t bytes);

// Makes the range readable and writable on the host; false when it is not live or the system refuses.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool OpenForHost(uint64_t address, uint64_t bytes);
// Says that the host has written the range.
VRAMTRACE_SIM_EXPORT void MarkWritten(uint64_t address, uint64_t bytes, bool known);

// The counts that the next device-to-host copies of 4 or 8 bytes (an answer of equal: of 1) on this thread
// will read, where they would read an invention: a library reads how much its kernel has found and allocates
// by it. First in, first out.
VRAMTRACE_SIM_EXPORT void ExpectCount(uint64_t value, bool known);
VRAMTRACE_SIM_EXPORT void ForgetCounts();
// What the next such copy of one byte reads: the last reduction of flags on this thread, over what nobody
// knows.
VRAMTRACE_SIM_EXPORT void ExpectFlag(bool value);
// How many of so many unknown ones are taken to be found (VRAMTRACE_SIM_COUNTS).
[[nodiscard]] VRAMTRACE_SIM_EXPORT uint64_t UnknownCount(uint64_t most);
// For CopyOut: false when none waits. Writes `bytes` bytes, little endian.
// A flag answers for bytes that nobody stored alone: it was left by a reduction that may have been read
// already.
[[nodiscard]] bool TakeCount(void* destination, uint64_t bytes, bool stored, bool* known);

}  // namespace vramtrace::simulator

// The same for the interpreter, which calls by name (ctypes).
extern "C" {
VRAMTRACE_SIM_EXPORT int vramtrace_sim_knowledge(uint64_t address, uint64_t bytes);
VRAMTRACE_SIM_EXPORT int vramtrace_sim_open(uint64_t address, uint64_t bytes);
VRAMTRACE_SIM_EXPORT void vramtrace_sim_written(uint64_t address, uint64_t bytes, int known);
VRAMTRACE_SIM_EXPORT void vramtrace_sim_expect_count(uint64_t value, int known);
VRAMTRACE_SIM_EXPORT void vramtrace_sim_forget_counts(void);
// One read of an invention by the program: where ("train.py:12"), what ("item of int64"), and what can hang
// on it: "shape", "branch" or "value". Counted by these three in the report (`invented_values`).
VRAMTRACE_SIM_EXPORT void vramtrace_sim_invented(const char* where, const char* what, const char* effect);
// What the value shadow did, for the report (`value_shadow`).
VRAMTRACE_SIM_EXPORT void vramtrace_sim_shadow_cost(uint64_t seen, uint64_t computed, uint64_t nanoseconds);
}
