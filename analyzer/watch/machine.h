#pragma once
// The program and the host from outside: /proc, no privilege beyond the user's own. Counters are rates
// between two looks.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace vramtrace::watch {

// One process, as /proc/PID/stat shows it.
struct ProcessState {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = 0;          // R running, S sleeping, D waiting for a device (man 5 proc)
  double cpu_seconds = 0;  // so far
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;  // a page had to come from a disk
};
[[nodiscard]] std::optional<ProcessState> ReadProcess(pid_t pid);
// `text`: a line of /proc/PID/stat. The name may hold spaces and parentheses.
[[nodiscard]] std::optional<ProcessState> ParseProcess(std::string_view text);

struct Rates {
  double main_busy = 0;     // share of a core that the main thread of the program computes
  double main_blocked = 0;  // share of looks at which it waited for a device
  int workers = 0;          // child processes of the program
  double workers_busy = 0;  // share of a core, mean over them
  double workers_blocked = 0;
  double major_faults = 0;  // a second, of the program and its workers
  double minor_faults = 0;
  double read_bytes = 0;  // a second, from storage; page cache left out
  double host_busy = 0;   // share of all cores of the machine
};

// Files of data on file systems that a network or a user process serves.
struct RemoteFiles {
  std::set<std::string> systems;  // "nfs", "fuse", ...
  std::string example;
};

class Machine {
 public:
  // Looks at `program` and the processes below it. Several looks make one Rates().
  void Look(pid_t program, std::span<const pid_t> below);
  // Since the last call; nothing before the second look.
  [[nodiscard]] std::optional<Rates> Take(double seconds);
  // Of the files that the program and its workers have open now. Libraries and sources are left out.
  void LookAtFiles(pid_t program, std::span<const pid_t> below);
  [[nodiscard]] const RemoteFiles& remote_files() const { return remote_; }

 private:
  struct Counters {
    double main_cpu = 0;
    double workers_cpu = 0;
    uint64_t major = 0;
    uint64_t minor = 0;
    uint64_t read = 0;
    uint64_t host_busy = 0;
    uint64_t host_all = 0;
  };
  std::optional<Counters> before_;
  Counters now_;
  int looks_ = 0;
  int main_blocked_ = 0;
  int worker_looks_ = 0;
  int workers_blocked_ = 0;
  int workers_most_ = 0;
  RemoteFiles remote_;
};

// Cores that this process may use: affinity, and the quota of its control group.
[[nodiscard]] double CoresAllowed();

}  // namespace vramtrace::watch
