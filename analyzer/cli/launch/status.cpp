#include "analyzer/cli/launch/status.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace vramtrace::launch {

int ExitCode(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return kExitCheckFailed;
}

int PassOn(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal_number = WTERMSIG(wait_status);
    switch (signal_number) {
      case SIGINT:
      case SIGTERM:
      case SIGHUP:
      case SIGQUIT:
      case SIGPIPE: {
        std::fflush(nullptr);
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(signal_number, SIG_DFL);
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, signal_number);
        sigprocmask(SIG_UNBLOCK, &only, nullptr);
        kill(getpid(), signal_number);
        break;  // only reached where the signal cannot kill us (process 1 of a container)
      }
      default:
        break;
    }
  }
  return ExitCode(wait_status);
}

}  // namespace vramtrace::launch
