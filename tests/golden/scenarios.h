#pragma once
// The traces whose reports are kept as texts.

#include <span>
#include <string>

namespace vramtrace::testing {

struct Scenario {
  const char* name;
  std::string (*bytes)();  // of the trace file
  bool damaged = false;    // the file was changed after it was written
  bool dump = false;       // the packets are kept as a text too
};

[[nodiscard]] std::span<const Scenario> Scenarios();

}  // namespace vramtrace::testing
