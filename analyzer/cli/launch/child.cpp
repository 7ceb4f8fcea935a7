#include "analyzer/cli/launch/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "analyzer/cli/launch/overwrite_guard.h"
#include "analyzer/cli/launch/scratch_layer.h"
#include "analyzer/cli/launch/status.h"

namespace vramtrace::launch {
namespace {

enum class Stage : int { kGuardReady, kScratch, kGuard, kExecute };

// What the child says before it becomes the command. Success of exec is silence: the socket closes.
struct Message {
  Stage stage;
  int error;
};

union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

void Send(int socket, Message message, int descriptor) {
  iovec data{&message, sizeof(message)};
  Control control = {};
  msghdr envelope = {};
  envelope.msg_iov = &data;
  envelope.msg_iovlen = 1;
  if (descriptor >= 0) {
    envelope.msg_control = control.bytes;
    envelope.msg_controllen = sizeof(control.bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&envelope);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  (void)!sendmsg(socket, &envelope, MSG_NOSIGNAL);
}

// False at the end.
bool Receive(int socket, Message* message, int* descriptor) {
  iovec data{message, sizeof(*message)};
  Control control = {};
  msghdr envelope = {};
  envelope.msg_iov = &data;
  envelope.msg_iovlen = 1;
  envelope.msg_control = control.bytes;
  envelope.msg_controllen = sizeof(control.bytes);
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(*message))) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&envelope);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(descriptor, CMSG_DATA(header), sizeof(int));
  }
  return true;
}

[[noreturn]] void Fail(int socket, Stage stage, int error) {
  Send(socket, {stage, error}, -1);
  _exit(kExitNotExecutable);
}

void Quieten(int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}

[[noreturn]] void BecomeCommand(const LaunchOptions& options, char* const* arguments,
                                char* const* environment, const SignalQueue& signals, pid_t wrapper,
                                int socket) {
  if (options.scratch != nullptr) {
    if (const int error = options.scratch->Enter(); error != 0) Fail(socket, Stage::kScratch, error);
  }
  // After the namespaces: new credentials clear it.
  if (options.signal_on_wrapper_death != 0) {
    prctl(PR_SET_PDEATHSIG, options.signal_on_wrapper_death);
    if (getppid() != wrapper) _exit(kExitNotExecutable);  // it died before we asked
  }
  if (options.guarded) {
    const int guard = OverwriteGuard::Install();
    if (guard < 0) Fail(socket, Stage::kGuard, errno);
    Send(socket, {Stage::kGuardReady, 0}, guard);
    close(guard);
  }
  if (options.output >= 0) Quieten(options.output);
  signals.RestoreInChild();
  // Searches PATH and runs a script without an interpreter line by the shell, as a shell would.
  execvpe(arguments[0], arguments, environment);
  Fail(socket, Stage::kExecute, errno);
}

void Explain(const Message& message, const std::string& command, Child* child) {
  child->exit_code = kExitNotExecutable;
  const char* reason = std::strerror(message.error);
  switch (message.stage) {
    case Stage::kGuardReady:
      break;
    case Stage::kScratch:
      child->error = fmt::format("cannot mount the scratch layer: {}; run with --in-place", reason);
      break;
    case Stage::kGuard:
      child->error = fmt::format("cannot watch for overwritten files: {}; run with --in-place", reason);
      break;
    case Stage::kExecute:
      if (message.error == ENOENT || message.error == ENOTDIR) {
        child->exit_code = kExitNotFound;
        child->error = command.find('/') == std::string::npos
                           ? fmt::format("{}: command not found", command)
                           : fmt::format("{}: no such file, or its interpreter is missing", command);
      } else if (message.error == E2BIG) {
        child->error = fmt::format("{}: arguments and environment are too long for the kernel", command);
      } else {
        child->error = fmt::format("{}: cannot be executed: {}", command, reason);
      }
      break;
  }
}

}  // namespace

SignalQueue::SignalQueue() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal_number : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&taken, signal_number);
  }
  sigprocmask(SIG_BLOCK, &taken, &before_);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);  // our own lines may go to a pipe that nobody reads
  descriptor_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalQueue::~SignalQueue() {
  if (descriptor_ >= 0) close(descriptor_);
  RestoreInChild();
}

void SignalQueue::RestoreInChild() const {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Child Launch(const LaunchOptions& options, Environment& environment, const SignalQueue& signals) {
  Child child;
  std::vector<std::string> command = options.command;
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::vector<char*> variables = environment.Pointers();

  std::array<int, 2> sockets = {-1, -1};
  const pid_t wrapper = getpid();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) == 0) child.process = fork();
  if (child.process == 0) {
    close(sockets[0]);
    BecomeCommand(options, arguments.data(), variables.data(), signals, wrapper, sockets[1]);
  }
  if (child.process < 0) {
    child.exit_code = kExitNotExecutable;
    child.error = fmt::format("cannot start a process: {}", std::strerror(errno));
    if (sockets[0] >= 0) close(sockets[0]);
    if (sockets[1] >= 0) close(sockets[1]);
    return child;
  }
  close(sockets[1]);
  Message message = {};
  while (Receive(sockets[0], &message, &child.guard)) Explain(message, options.command[0], &child);
  close(sockets[0]);
  if (!child.error.empty()) {
    waitpid(child.process, nullptr, 0);
    child.process = -1;
    if (child.guard >= 0) close(child.guard);
    child.guard = -1;
  } else {
    child.exit_code = 0;
  }
  return child;
}

}  // namespace vramtrace::launch
