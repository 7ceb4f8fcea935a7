#pragma once
// Traces as older versions wrote them: tests/golden/stored/<version>.vtrace.gz, and never changed.

#include <string>

namespace vramtrace::testing {

// The unpacked trace; empty when there is none.
[[nodiscard]] std::string ReadStored(const std::string& name);

}  // namespace vramtrace::testing
