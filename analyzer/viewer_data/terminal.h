#pragma once
// The timeline and the top of the flame graph in a terminal, for where there is no browser.

#include <string>

#include "analyzer/viewer_data/build.h"

namespace vramtrace::viewer_data {

struct TerminalSize {
  size_t columns = 100;
  size_t rows = 40;
};
[[nodiscard]] TerminalSize SizeOfTerminal();

// Without `color` the classes are letters.
[[nodiscard]] std::string DrawInTerminal(const ViewerData& data, const TerminalSize& size, bool color);

}  // namespace vramtrace::viewer_data
