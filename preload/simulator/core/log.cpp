#include "preload/simulator/core/log.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "preload/simulator/core/options.h"
#include "preload/simulator/core/report.h"

namespace vramtrace::simulator {
namespace {

void Write(const char* format, va_list arguments) {
  char line[1024];
  int used = std::snprintf(line, sizeof line, "vramtrace: simulator: ");
  // The caller has started the list.
  int more = std::vsnprintf(  // NOLINT(clang-analyzer-valist.Uninitialized)
      line + used, sizeof line - static_cast<size_t>(used) - 1, format, arguments);
  size_t length = static_cast<size_t>(used) + static_cast<size_t>(more < 0 ? 0 : more);
  if (length > sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, length) < 0) return;  // nowhere left to say it
}

}  // namespace

bool Verbose() { return CurrentOptions().log; }

void Log(const char* format, ...) {
  if (!Verbose()) return;
  va_list arguments;
  va_start(arguments, format);
  Write(format, arguments);
  va_end(arguments);
}

void Warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Write(format, arguments);
  va_end(arguments);
}

void CountWork(const char* library, const char* function) { report::Work(library, function); }

}  // namespace vramtrace::simulator

extern "C" void vramtrace_sim_unsupported(const char* library, const char* function) {
  vramtrace::simulator::report::Unsupported(library, function);
}
