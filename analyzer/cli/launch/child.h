#pragma once
// Starts the user's command.

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "analyzer/cli/launch/environment.h"

namespace vramtrace::launch {

class OverwriteGuard;
class ScratchLayer;

// Signals that the wrapper takes by poll() while its child runs, and what they did before. Made before the
// child is started; the child gets the old state back.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  [[nodiscard]] int Descriptor() const { return descriptor_; }
  void RestoreInChild() const;

 private:
  sigset_t before_;
  struct sigaction pipe_before_;
  int descriptor_ = -1;
};

struct LaunchOptions {
  std::vector<std::string> command;  // not empty
  const ScratchLayer* scratch = nullptr;
  bool guarded = false;             // install the overwrite guard
  int signal_on_wrapper_death = 0;  // what the child gets when the wrapper is killed
  // Descriptor for the command's stdout and stderr, which then reads nothing; -1: the wrapper's own three.
  int output = -1;
};

struct Child {
  pid_t process = -1;
  int guard = -1;  // where the guard's questions come from; owned by the caller
  // Not started: why, and the exit code to end with (127 not found, 126 cannot be executed).
  int exit_code = 0;
  std::string error;
};

[[nodiscard]] Child Launch(const LaunchOptions& options, Environment& environment,
                           const SignalQueue& signals);

}  // namespace vramtrace::launch
