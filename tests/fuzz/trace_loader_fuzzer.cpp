// Any bytes as a trace file: analyze and dump end with a report or a sentence.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "analyzer/report/build.h"
#include "analyzer/report/dump.h"
#include "analyzer/report/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("trace", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  const auto built = vramtrace::report::BuildReport(path, {});
  if (built.ok()) (void)vramtrace::report::ToText(built.value().report, {});
  (void)vramtrace::report::DumpTrace(path, [](std::string_view) {});
  return 0;
}
