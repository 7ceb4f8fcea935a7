#include "analyzer/watch/machine.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace vramtrace::watch {
namespace {

// linux/magic.h and the file systems' own sources; those that are not on a disk of this machine.
struct FileSystem {
  uint32_t magic;
  const char* name;
};
constexpr FileSystem kRemote[] = {
    {0x6969, "nfs"},        {0xff534d42, "cifs"},   {0xfe534d42, "smb2"}, {0x65735546, "fuse"},
    {0x00c36400, "ceph"},   {0x0bd00bd0, "lustre"}, {0x01021997, "9p"},   {0x47504653, "gpfs"},
    {0x19830326, "beegfs"}, {0x6b414653, "afs"},
};

// The two words that a process waits in when a device serves it.
uint64_t ReadBytes(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/io", pid));
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return 0;
}

void ReadHost(uint64_t* busy, uint64_t* all) {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  uint64_t value = 0;
  for (int field = 0; field < 8 && file >> value; ++field) {
    *all += value;
    if (field != 3 && field != 4) *busy += value;  // idle, waiting for input and output
  }
}

bool IsSource(const std::string& path) {
  for (const char* ending : {".py", ".pyc", ".so", ".vtrace", ".log"}) {
    if (path.ends_with(ending)) return true;
  }
  return path.find("/site-packages/") != std::string::npos || path.find(".so.") != std::string::npos;
}

}  // namespace

std::optional<ProcessState> ParseProcess(std::string_view text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcessState state;
  std::istringstream head{std::string(text.substr(0, open))};
  std::istringstream rest{std::string(text.substr(close + 1))};
  if (!(head >> state.pid)) return std::nullopt;
  // Fields from 3 on (man 5 proc): state, ppid, pgrp, session, tty, tpgid, flags, minflt, cminflt, majflt,
  // cmajflt, utime, stime.
  int64_t skipped = 0;
  uint64_t child = 0;
  uint64_t user = 0;
  uint64_t system = 0;
  rest >> state.state >> state.parent;
  for (int i = 0; i < 5; ++i) rest >> skipped;
  rest >> state.minor_faults >> child >> state.major_faults >> child >> user >> system;
  if (!rest) return std::nullopt;
  state.cpu_seconds = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return state;
}

std::optional<ProcessState> ReadProcess(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return ParseProcess(line);
}

void Machine::Look(pid_t program, std::span<const pid_t> below) {
  const std::optional<ProcessState> whole = ReadProcess(program);
  // The main thread, not the process: autograd and the loader's pinning have threads of their own.
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/stat", program));
  std::string line;
  const bool there = static_cast<bool>(std::getline(file, line));
  const std::optional<ProcessState> main = there ? ParseProcess(line) : std::nullopt;
  if (!whole || !main) return;
  Counters counters;
  counters.main_cpu = main->cpu_seconds;
  counters.major = whole->major_faults;
  counters.minor = whole->minor_faults;
  counters.read = ReadBytes(program);
  main_blocked_ += main->state == 'D' ? 1 : 0;
  int workers = 0;
  for (const pid_t pid : below) {
    const std::optional<ProcessState> worker = ReadProcess(pid);
    if (!worker || worker->parent != program) continue;
    ++workers;
    counters.workers_cpu += worker->cpu_seconds;
    counters.major += worker->major_faults;
    counters.minor += worker->minor_faults;
    counters.read += ReadBytes(pid);
    workers_blocked_ += worker->state == 'D' ? 1 : 0;
  }
  worker_looks_ += workers;
  workers_most_ = std::max(workers_most_, workers);
  ReadHost(&counters.host_busy, &counters.host_all);
  now_ = counters;
  if (!before_) before_ = counters;
  ++looks_;
}

std::optional<Rates> Machine::Take(double seconds) {
  if (!before_ || looks_ == 0 || seconds <= 0) return std::nullopt;
  // A worker that ended takes its counters along.
  const auto rate = [seconds](auto now, auto before) {
    return now > before ? static_cast<double>(now - before) / seconds : 0.0;
  };
  Rates rates;
  rates.main_busy = rate(now_.main_cpu, before_->main_cpu);
  rates.main_blocked = static_cast<double>(main_blocked_) / looks_;
  rates.workers = workers_most_;
  if (workers_most_ > 0) rates.workers_busy = rate(now_.workers_cpu, before_->workers_cpu) / workers_most_;
  if (worker_looks_ > 0) rates.workers_blocked = static_cast<double>(workers_blocked_) / worker_looks_;
  rates.major_faults = rate(now_.major, before_->major);
  rates.minor_faults = rate(now_.minor, before_->minor);
  rates.read_bytes = rate(now_.read, before_->read);
  const uint64_t all = now_.host_all - std::min(now_.host_all, before_->host_all);
  if (all > 0 && now_.host_busy >= before_->host_busy) {
    rates.host_busy = static_cast<double>(now_.host_busy - before_->host_busy) / static_cast<double>(all);
  }
  before_ = now_;
  looks_ = main_blocked_ = worker_looks_ = workers_blocked_ = workers_most_ = 0;
  return rates;
}

void Machine::LookAtFiles(pid_t program, std::span<const pid_t> below) {
  std::vector<pid_t> all(below.begin(), below.end());
  all.push_back(program);
  for (const pid_t pid : all) {
    const std::string folder = fmt::format("/proc/{}/fd", pid);
    DIR* listing = ::opendir(folder.c_str());
    if (listing == nullptr) continue;
    while (const dirent* entry = ::readdir(listing)) {
      const std::string link = folder + "/" + entry->d_name;
      char target[4096] = {};
      if (::readlink(link.c_str(), target, sizeof target - 1) <= 0 || target[0] != '/') continue;
      struct statfs system {};
      if (IsSource(target) || ::statfs(link.c_str(), &system) != 0) continue;
      for (const FileSystem& known : kRemote) {
        if (static_cast<uint32_t>(system.f_type) != known.magic) continue;
        remote_.systems.insert(known.name);
        if (remote_.example.empty()) remote_.example = target;
      }
    }
    ::closedir(listing);
  }
}

double CoresAllowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    cores = std::min(cores, std::max(std::atof(quota.c_str()) / period, 0.01));
  }
  return cores;
}

}  // namespace vramtrace::watch
