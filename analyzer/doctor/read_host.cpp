#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "analyzer/doctor/collect.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): musl's unistd.h has it only on request

namespace vramtrace::doctor {
namespace {

namespace fs = std::filesystem;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<uint64_t> Number(const std::string& path) {
  const std::string line = FirstLine(path);
  if (line.empty() || line.find_first_not_of("0123456789") != std::string::npos || line.size() > 19)
    return std::nullopt;
  return std::stoull(line);
}

void ReadMemory(HostFacts* host) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes && std::getline(file, unit)) {
    if (key == "MemTotal:") host->memory_total = kibibytes << 10;
    if (key == "MemAvailable:") host->memory_free = kibibytes << 10;
  }
  // cgroup v2, then v1; a limit near 2^63 is none.
  for (const auto& [limit, now] : {std::pair("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                                   std::pair("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                             "/sys/fs/cgroup/memory/memory.usage_in_bytes")}) {
    const auto most = Number(limit);
    if (!most || *most >= uint64_t{1} << 60) continue;
    host->container_memory = most;
    const uint64_t used = Number(now).value_or(0);
    host->memory_free = std::min(host->memory_free.value_or(*most), *most - std::min(*most, used));
    break;
  }
}

void ReadShared(HostFacts* host) {
  struct statvfs shared {};
  if (::statvfs("/dev/shm", &shared) != 0) return;
  host->shared_total = static_cast<uint64_t>(shared.f_blocks) * shared.f_frsize;
  host->shared_free = static_cast<uint64_t>(shared.f_bavail) * shared.f_frsize;
}

void ReadCores(HostFacts* host) {
  host->cores_machine = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  host->cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : host->cores_machine;
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    host->cores = std::min(host->cores, std::strtod(quota.c_str(), nullptr) / period);
  }
}

void ReadLimits(HostFacts* host) {
  host->processes_limit = Number("/sys/fs/cgroup/pids.max");
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    host->locked_limit = limit.rlim_cur;
  std::error_code error;
  host->container = fs::exists("/.dockerenv", error) || fs::exists("/run/.containerenv", error) ||
                    std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

// ARPHRD_ETHER 1, ARPHRD_INFINIBAND 32 (linux/if_arp.h).
void ReadNetwork(HostFacts* host) {
  std::error_code error;
  for (fs::directory_iterator each("/sys/class/net", error), end; !error && each != end;
       each.increment(error)) {
    const std::string folder = each->path().string();
    const uint64_t type = Number(folder + "/type").value_or(0);
    if (type != 1 && type != 32) continue;
    NetworkCard card;
    card.name = each->path().filename().string();
    card.kind = type == 32 ? "InfiniBand" : "Ethernet";
    card.up = FirstLine(folder + "/operstate") != "down";
    if (const auto megabits = Number(folder + "/speed"); megabits && *megabits > 0) {
      card.gigabits = static_cast<double>(*megabits) / 1000;
    }
    // Interfaces of the kernel's own that nobody uses: no hardware behind them, and down.
    std::error_code ignored;
    if (!card.up && !fs::exists(folder + "/device", ignored)) continue;
    host->network.push_back(std::move(card));
  }
  // "200 Gb/sec (4X HDR)"; RoCE cards are here too, beside their Ethernet side.
  for (fs::directory_iterator each("/sys/class/infiniband", error), end; !error && each != end;
       each.increment(error)) {
    const std::string port = each->path().string() + "/ports/1/";
    NetworkCard card;
    card.name = each->path().filename().string();
    card.kind = FirstLine(port + "link_layer") == "Ethernet" ? "RoCE" : "InfiniBand";
    card.up = FirstLine(port + "state").find("ACTIVE") != std::string::npos;
    const double rate = std::strtod(FirstLine(port + "rate").c_str(), nullptr);
    if (rate > 0) card.gigabits = rate;
    host->network.push_back(std::move(card));
  }
}

// HAMi-core's variables and library (Project-HAMi/HAMi-core), and what stands in every process' preload list.
void ReadLimiters(HostFacts* host) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos && text.starts_with("CUDA_DEVICE_MEMORY_LIMIT")) {
      host->limiters[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  for (const char* file : {"/etc/ld.so.preload", "/proc/self/maps"}) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      for (const char* library : {"libvgpu.so", "libcuda-control.so", "libgemhook.so"}) {
        if (line.find(library) != std::string::npos) host->limiters.emplace(library, "");
      }
    }
  }
}

}  // namespace

HostFacts ReadHost() {
  HostFacts host;
  ReadMemory(&host);
  ReadShared(&host);
  ReadCores(&host);
  ReadLimits(&host);
  ReadNetwork(&host);
  ReadLimiters(&host);
  return host;
}

}  // namespace vramtrace::doctor
