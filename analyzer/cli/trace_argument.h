#pragma once
// The trace that a command works on.

#include <string>
#include <vector>

#include "analyzer/trace/result.h"

namespace vramtrace::cli {

// The file that `argument` means: itself; the newest *.vtrace of the current folder when it is empty; the one
// trace of a folder. Says on stderr which one was chosen when the user did not name it.
[[nodiscard]] trace::Result<std::string> ChooseTrace(const std::string& argument);

// The same for a command that takes a run: of a folder every trace, by name. Never empty.
[[nodiscard]] trace::Result<std::vector<std::string>> ChooseTraces(const std::string& argument);

}  // namespace vramtrace::cli
