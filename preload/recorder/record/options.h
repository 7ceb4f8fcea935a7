#pragma once
// What the environment may say to the recorder: one row an option. Printed with VRAMTRACE_VERBOSE=1.

#include <cstdint>

namespace vramtrace::record {

// X(field, type, variable, default, help). Types: Path, Bytes, Flag, Mode.
#define VRAMTRACE_RECORD_OPTIONS(X)                                                                         \
  X(output, Path, "VRAMTRACE_OUTPUT", "",                                                                   \
    "the trace's file or folder; %p process id, %r rank, %h host, %n program, %t start time, %% a percent") \
  X(record, Flag, "VRAMTRACE_RECORD", "1", "0 turns the recorder off")                                      \
  X(verbose, Flag, "VRAMTRACE_VERBOSE", "0", "1 says on stderr what the recorder does")                     \
  X(max_size, Bytes, "VRAMTRACE_MAX_SIZE", "2GiB",                                                          \
    "the trace never grows larger: of a long run the first, the last and the peak steps are kept whole; 0 " \
    "is "                                                                                                   \
    "no limit")                                                                                             \
  X(chunk_size, Bytes, "VRAMTRACE_CHUNK_SIZE", "256KiB", "unit in which the trace grows, 64KiB to 16MiB")   \
  X(table_memory, Bytes, "VRAMTRACE_TABLE_MEMORY", "256MiB",                                                \
    "host memory for the tables of stacks and names; stacks that do not fit are left out and counted")      \
  X(write, Mode, "VRAMTRACE_WRITE", "auto", "auto, mapped or plain: how the trace is written")

enum class WriteChoice : uint8_t { kAutomatic, kMapped, kPlain };

namespace option_types {
using Path = const char*;
using Bytes = uint64_t;
using Flag = bool;
using Mode = WriteChoice;
}  // namespace option_types

struct Options {
#define VRAMTRACE_OPTION_FIELD(field, type, variable, text, help) option_types::type field{};
  VRAMTRACE_RECORD_OPTIONS(VRAMTRACE_OPTION_FIELD)
#undef VRAMTRACE_OPTION_FIELD
};

// The options, read from the environment at the first call. A value that makes no sense is named on stderr,
// and the default holds.
[[nodiscard]] const Options& GetOptions() noexcept;

// Prints every option, its value and what it is for.
void PrintOptions() noexcept;

// "4096", "64KiB", "1.5 GiB", "2G" (binary units). False when it is none of these.
[[nodiscard]] bool ParseBytes(const char* text, uint64_t* bytes) noexcept;

// Reads all options through `get` (getenv's shape), for tests.
[[nodiscard]] Options ReadOptions(const char* (*get)(const char* name)) noexcept;

}  // namespace vramtrace::record
