#pragma once

namespace vramtrace::cli {

// Colour only on a terminal and never with NO_COLOR (https://no-color.org).
[[nodiscard]] bool ColorWanted();

}  // namespace vramtrace::cli
