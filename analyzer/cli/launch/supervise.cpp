#include "analyzer/cli/launch/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "analyzer/cli/launch/process_tree.h"

namespace vramtrace::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Between asking a stopped program to end and ending it.
constexpr milliseconds kGraceBeforeKill{5000};
// How often to look whether processes left behind have gone.
constexpr milliseconds kLookAgain{100};

class Supervisor {
 public:
  Supervisor(const Child& child, const SignalQueue& signals, const SuperviseOptions& options)
      : child_(child), signals_(signals), options_(options), guard_(child.guard) {
    if (options.time_out) deadline_ = Clock::now() + *options.time_out;
  }

  Ending Run() {
    while (!Done()) {
      Wait();
      TakeSignals();
      if (guard_ready_) AnswerGuard();
      Reap();
      LookAtMemory();
      LookAtClock();
      Tick();
    }
    return ending_;
  }

 private:
  bool Done() const { return ended_ && (!options_.whole_tree || no_more_); }

  void Wait() {
    pollfd descriptors[2] = {{signals_.Descriptor(), POLLIN, 0}, {guard_, POLLIN, 0}};
    const int count = guard_ >= 0 ? 2 : 1;
    const int ready = poll(descriptors, static_cast<nfds_t>(count), PollMilliseconds());
    guard_ready_ = ready > 0 && count == 2 && (descriptors[1].revents & POLLIN) != 0;
    if (ready > 0 && count == 2 && !guard_ready_ && descriptors[1].revents != 0) guard_ = -1;  // nobody left
  }

  int PollMilliseconds() const {
    milliseconds pause = std::chrono::hours(24);
    const auto until = [&](Clock::time_point when) {
      const auto left = std::chrono::ceil<milliseconds>(when - Clock::now());
      pause = std::clamp(left, milliseconds(0), pause);
    };
    if (deadline_) until(*deadline_);
    if (kill_at_) until(*kill_at_);
    if (Watching()) until(look_at_memory_);
    if (options_.tick && !ended_) until(tick_at_);
    if (ended_) pause = std::min(pause, kLookAgain);
    return static_cast<int>(pause.count());
  }

  bool Watching() const { return options_.host_memory != nullptr && !ending_.stop; }

  // Signals from the terminal reach the child by themselves, being in the same process group; those that
  // somebody sent to the wrapper alone are handed on.
  void TakeSignals() {
    signalfd_siginfo info;
    while (read(signals_.Descriptor(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      const auto number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD || info.ssi_code == SI_KERNEL) continue;
      if (!ended_) {
        kill(child_.process, number);
      } else {
        SignalDescendants(getpid(), number);
      }
    }
  }

  void AnswerGuard() {
    options_.guard->Answer(guard_, [this](const Overwrite& overwrite) {
      if (!ending_.stop) StopRun(overwrite, SIGTERM);
    });
  }

  void Reap() {
    while (true) {
      int status = 0;
      const pid_t gone = waitpid(options_.whole_tree ? -1 : child_.process, &status, WNOHANG);
      if (gone < 0 && errno == EINTR) continue;
      if (gone < 0) no_more_ = true;
      if (gone <= 0) return;
      if (gone != child_.process) continue;
      ended_ = true;
      ending_.wait_status = status;
      left_since_ = Clock::now();
    }
  }

  void LookAtMemory() {
    if (!Watching() || Clock::now() < look_at_memory_) return;
    auto shortage = options_.host_memory->Look(getpid());
    look_at_memory_ = Clock::now() + options_.host_memory->Pause();
    // No time to ask: the kernel would choose a victim first.
    if (shortage) StopRun(*shortage, SIGKILL);
  }

  void LookAtClock() {
    const auto now = Clock::now();
    if (deadline_ && now >= *deadline_) {
      deadline_.reset();
      if (!ending_.stop) StopRun(TimedOut{*options_.time_out}, SIGTERM);
    }
    if (kill_at_ && now >= *kill_at_) {
      SignalDescendants(getpid(), SIGKILL);
      kill_at_ = now + kGraceBeforeKill;
    }
    const bool lingering = ended_ && options_.whole_tree && !no_more_ && !ending_.stop;
    if (lingering && now >= left_since_ + options_.patience &&
        !(options_.still_wanted && options_.still_wanted())) {
      StopRun(LeftRunning{static_cast<int>(Descendants(getpid()).size())}, SIGTERM);
    }
  }

  void Tick() {
    if (!options_.tick || ended_ || Clock::now() < tick_at_) return;
    options_.tick();
    tick_at_ = Clock::now() + options_.tick_every;
  }

  void StopRun(Stop why, int signal_number) {
    ending_.stop = std::move(why);
    SignalDescendants(getpid(), signal_number);
    kill_at_ = Clock::now() + kGraceBeforeKill;
  }

  const Child& child_;
  const SignalQueue& signals_;
  const SuperviseOptions& options_;
  int guard_;
  bool guard_ready_ = false;
  bool ended_ = false;    // the command itself
  bool no_more_ = false;  // nor any of its descendants is left
  Ending ending_;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> kill_at_;
  Clock::time_point look_at_memory_ = Clock::now();
  Clock::time_point left_since_;
  Clock::time_point tick_at_ = Clock::now();
};

}  // namespace

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

Ending Supervise(const Child& child, const SignalQueue& signals, const SuperviseOptions& options) {
  return Supervisor(child, signals, options).Run();
}

}  // namespace vramtrace::launch
