#pragma once
// How the search asks for a dry run, and what it learns from one. `vramtrace fit` makes real ones
// (analyzer/cli/dry_runner.h); tests answer from a table.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "preload/catalogue/catalogue.h"

namespace vramtrace::fit {

using Bytes = uint64_t;

struct RunRequest {
  std::vector<std::string> command;  // not empty, without placeholders
  const catalogue::Gpu* gpu = nullptr;
  Bytes total = 0;  // memory of the card; 0: the catalogue's
  std::vector<std::pair<std::string, std::string>> environment;
};

enum class End : uint8_t {
  kCompleted,    // the program ended with 0, or after as many steps as asked for
  kOutOfMemory,  // the simulated card refused a request, and the program ended or went on without it
  kFailed,       // the program ended with another status
  kTimedOut,
  kStopped,      // by us: for a file's sake, or the host's memory
  kInterrupted,  // somebody pressed Ctrl-C
  kNotStarted,
};

struct RunResult {
  End end = End::kNotStarted;
  int exit_code = 0;                    // of the program, as a shell shows it
  std::string why;                      // kStopped, kTimedOut, kNotStarted: one sentence
  std::vector<std::string> last_lines;  // of what the program printed
  std::string trace;                    // of its fullest process; empty: none
  // Of the fullest device. 0 where it used none.
  Bytes total = 0;
  Bytes context = 0;
  Bytes peak_used = 0;
  Bytes largest_refused = 0;
  // PyTorch's own peaks; 0 where its caching allocator was not used.
  Bytes peak_allocated = 0;
  Bytes peak_reserved = 0;
  uint64_t steps = 0;  // whole optimizer steps
};

class Runner {
 public:
  virtual ~Runner() = default;
  [[nodiscard]] virtual RunResult Run(const RunRequest& request) = 0;
};

}  // namespace vramtrace::fit
