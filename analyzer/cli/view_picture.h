#pragma once
// `analyze --svg`: the two pictures of a trace in a file.

#include <optional>
#include <string>

#include "analyzer/trace/result.h"

namespace vramtrace::cli {

// The error, if there is one.
[[nodiscard]] std::optional<trace::Error> WritePicture(const std::string& trace, const std::string& output);

}  // namespace vramtrace::cli
