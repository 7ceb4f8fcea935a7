#pragma once
// The traces whose reports are kept as texts.

#include <ostream>
#include <span>
#include <string>

namespace vramtrace::testing {

struct Scenario {
  const char* name;
  std::string (*bytes)();  // of the trace file
  bool damaged = false;    // the file was changed after it was written
  bool dump = false;       // the packets are kept as a text too
};

// How a test names its parameter: without it, the bytes of the structure are printed.
inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

[[nodiscard]] std::span<const Scenario> Scenarios();

}  // namespace vramtrace::testing
