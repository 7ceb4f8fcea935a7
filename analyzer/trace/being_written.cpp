#include "analyzer/trace/being_written.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <fstream>

namespace vramtrace::trace {

bool IsMappedBy(uint32_t pid, const std::string& path) {
  struct stat status {};
  if (pid == 0 || ::stat(path.c_str(), &status) != 0) return false;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::string line;
  while (std::getline(maps, line)) {
    // address permissions offset major:minor inode path
    unsigned major_number = 0;
    unsigned minor_number = 0;
    unsigned long inode = 0;  // NOLINT(google-runtime-int): what %lu wants
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &major_number, &minor_number, &inode) != 3)
      continue;
    if (inode == status.st_ino && ::makedev(major_number, minor_number) == status.st_dev) return true;
  }
  return false;
}

}  // namespace vramtrace::trace
