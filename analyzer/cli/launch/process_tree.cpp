#include "analyzer/cli/launch/process_tree.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

namespace vramtrace::launch {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File Open(const std::string& path) { return {std::fopen(path.c_str(), "re"), std::fclose}; }

// Parent of a living process, 0 for none. The name in /proc/PID/stat may hold spaces and brackets, so fields
// are counted from the last bracket.
pid_t ParentOf(pid_t process) {
  const File file = Open(fmt::format("/proc/{}/stat", process));
  char line[1024] = {};
  if (!file || std::fgets(line, sizeof(line), file.get()) == nullptr) return 0;
  const char* end = std::strrchr(line, ')');
  char state = 0;
  int parent = 0;
  if (end == nullptr || std::sscanf(end + 1, " %c %d", &state, &parent) != 2) return 0;
  return state == 'Z' || state == 'X' ? 0 : parent;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t ancestor) {
  std::unordered_multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (proc) {
    const dirent* entry = readdir(proc.get());
    if (entry == nullptr) break;
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const auto process = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (const pid_t parent = ParentOf(process); parent > 0) children.emplace(parent, process);
  }
  std::vector<pid_t> found = {ancestor};
  for (size_t next = 0; next < found.size(); ++next) {
    const auto [begin, end] = children.equal_range(found[next]);
    for (auto each = begin; each != end; ++each) found.push_back(each->second);
  }
  found.erase(found.begin());
  return found;
}

void SignalDescendants(pid_t ancestor, int signal_number) {
  std::vector<pid_t> told;
  for (int round = 0; round < 3; ++round) {
    bool news = false;
    for (const pid_t process : Descendants(ancestor)) {
      if (std::find(told.begin(), told.end(), process) != told.end()) continue;
      kill(process, signal_number);
      told.push_back(process);
      news = true;
    }
    if (!news) return;
  }
}

uint64_t HostBytes(pid_t process) {
  const File file = Open(fmt::format("/proc/{}/status", process));
  uint64_t total_kib = 0;
  char line[256];
  while (file && std::fgets(line, sizeof(line), file.get()) != nullptr) {
    unsigned long long kib = 0;
    if (std::sscanf(line, "RssAnon: %llu", &kib) == 1 || std::sscanf(line, "RssShmem: %llu", &kib) == 1 ||
        std::sscanf(line, "VmSwap: %llu", &kib) == 1) {
      total_kib += kib;
    }
  }
  return total_kib << 10;
}

}  // namespace vramtrace::launch
