#include "preload/recorder/record/message.h"

#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace vramtrace::record {

void Say(const char* format, ...) noexcept {
  const int saved_errno = errno;
  char line[1024] = "vramtrace: ";
  constexpr int kPrefix = 11;
  constexpr int kRoom = 1000;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + kPrefix, kRoom, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if (length >= kRoom) length = kRoom - 1;
  line[kPrefix + length] = '\n';
  // One write, so that lines of several processes do not mix. A closed stderr is nobody's fault.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line, size_t{kPrefix} + static_cast<size_t>(length) + 1);
  errno = saved_errno;
}

}  // namespace vramtrace::record
