#include "analyzer/cli/color.h"

#include <unistd.h>

#include <cstdlib>

namespace vramtrace::cli {

bool ColorWanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace vramtrace::cli
