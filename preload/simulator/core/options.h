#pragma once
// Every setting of the simulator: one row each. Read once, at the first use. A value that does not parse is
// said on stderr and the default is used.

#include <cstdint>
#include <string>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

// X(field, variable, type, default, what it does). Types: Text, Count, Bytes (plain, or with KiB, MiB, GiB,
// KB, MB, GB), Flag (set and not 0).
#define VRAMTRACE_SIM_OPTIONS(X)                                                                           \
  X(gpu, "VRAMTRACE_SIM_GPU", Text, "rtx4090", "the card, by any name that the catalogue knows")           \
  X(count, "VRAMTRACE_SIM_COUNT", Count, 1, "how many of them the machine has")                            \
  X(total_bytes, "VRAMTRACE_SIM_TOTAL", Bytes, 0, "CUDA total in place of the catalogue's")                \
  X(context_bytes, "VRAMTRACE_SIM_CONTEXT", Bytes, kFromCatalogue,                                         \
    "context charge in place of the catalogue's")                                                          \
  X(copy_limit_bytes, "VRAMTRACE_SIM_COPY_LIMIT", Bytes, 16u << 20, "largest copy whose bytes are stored") \
  X(store_limit_bytes, "VRAMTRACE_SIM_STORE_LIMIT", Bytes, 256u << 20,                                     \
    "once this much is stored, only copies up to 64 KiB are")                                              \
  X(cudnn_workspace_bytes, "VRAMTRACE_SIM_CUDNN_WORKSPACE", Bytes, 0, "workspace of a cuDNN plan")         \
  X(counts, "VRAMTRACE_SIM_COUNTS", Text, "0.5", "how many of an unknown mask: largest, or a ratio")       \
  X(log, "VRAMTRACE_SIM_LOG", Flag, false, "say on stderr what is asked")                                  \
  X(fail, "VRAMTRACE_SIM_FAIL", Text, "", "KIND:N[+][,...]: calls that fail, see faults.h")                \
  X(scenario, "VRAMTRACE_SIM_SCENARIO", Text, "", "file of what the cards say, see scenario.h")            \
  X(report, "VRAMTRACE_SIM_REPORT", Text, "", "file for the report at exit; %p becomes the process id")

inline constexpr uint64_t kFromCatalogue = ~uint64_t{0};

using OptionText = std::string;
using OptionCount = int;
using OptionBytes = uint64_t;
using OptionFlag = bool;

struct Options {
#define X(field, variable, type, default_value, what) Option##type field = default_value;
  VRAMTRACE_SIM_OPTIONS(X)
#undef X
};

[[nodiscard]] VRAMTRACE_SIM_EXPORT const Options& CurrentOptions();

// For tests: false when the text is not a size.
[[nodiscard]] VRAMTRACE_SIM_EXPORT bool ParseBytes(const char* text, uint64_t* bytes);

}  // namespace vramtrace::simulator
