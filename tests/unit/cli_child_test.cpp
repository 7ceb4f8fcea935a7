#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/cli/launch/child.h"
#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/supervise.h"
#include "tests/unit/cli_files.h"

namespace vramtrace::launch {
namespace {

using cli_test::Folder;
using cli_test::Read;
using cli_test::Write;
using std::chrono::milliseconds;

Ending RunShell(const std::string& script, const SuperviseOptions& options = {}) {
  Environment environment(environ);
  const SignalQueue signals;
  const Child child = Launch({.command = {"sh", "-c", script}}, environment, signals);
  EXPECT_GT(child.process, 0) << child.error;
  return Supervise(child, signals, options);
}

TEST(ExitCode, IsTheShells) {
  EXPECT_EQ(ExitCode(RunShell("exit 7").wait_status), 7);
  EXPECT_EQ(ExitCode(RunShell("kill -SEGV $$").wait_status), 128 + SIGSEGV);
  EXPECT_EQ(ExitCode(RunShell("kill -KILL $$").wait_status), 128 + SIGKILL);
}

TEST(PassOnDeathTest, DiesOfTheSignalsThatPeopleSend) {
  const int status = RunShell("kill -TERM $$").wait_status;
  EXPECT_EXIT(_exit(PassOn(status)), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(PassOn(RunShell("kill -SEGV $$").wait_status), 128 + SIGSEGV) << "a crash is not ours";
  EXPECT_EQ(PassOn(RunShell("exit 3").wait_status), 3);
}

TEST(Launch, TellsNotFoundFromNotExecutable) {
  const Folder folder;
  Write(folder / "data", "x");
  Environment environment(environ);
  const SignalQueue signals;
  const Child missing = Launch({.command = {"no-such-command-here"}}, environment, signals);
  EXPECT_EQ(missing.exit_code, kExitNotFound);
  EXPECT_NE(missing.error.find("command not found"), std::string::npos);
  EXPECT_EQ(Launch({.command = {(folder / "none").string()}}, environment, signals).exit_code, kExitNotFound);
  const Child data = Launch({.command = {(folder / "data").string()}}, environment, signals);
  EXPECT_EQ(data.exit_code, kExitNotExecutable);
  EXPECT_NE(data.error.find("Permission denied"), std::string::npos);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no zombie is left";
}

TEST(Launch, SaysThatTheEnvironmentIsTooLong) {
  Environment environment(environ);
  environment.Set("LONG", std::string(1 << 20, 'x'));  // one string may have 128 KiB
  const SignalQueue signals;
  const Child child = Launch({.command = {"true"}}, environment, signals);
  EXPECT_EQ(child.exit_code, kExitNotExecutable);
  EXPECT_NE(child.error.find("too long"), std::string::npos);
}

TEST(Launch, GivesTheChildItsSignalsBack) {
  // Blocked or ignored signals would be inherited by the program.
  const Folder folder;
  RunShell("grep -E 'SigBlk|SigIgn' /proc/self/status > '" + (folder / "state").string() + "'");
  EXPECT_EQ(Read(folder / "state"), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(Supervise, EndsAProgramAtItsTimeOut) {
  const Ending ending = RunShell("sleep 60", {.time_out = milliseconds(100)});
  ASSERT_TRUE(ending.stop.has_value());
  EXPECT_TRUE(std::holds_alternative<TimedOut>(*ending.stop));
  EXPECT_EQ(ExitCode(ending.wait_status), 128 + SIGTERM);
}

TEST(Supervise, WaitsForProcessesLeftBehind) {
  const Folder folder;
  AdoptOrphans();
  const std::string file = (folder / "late").string();
  const Ending ending = RunShell("(sleep 0.3; echo done > '" + file + "') & exit 5", {.whole_tree = true});
  EXPECT_EQ(ExitCode(ending.wait_status), 5);
  EXPECT_FALSE(ending.stop.has_value());
  EXPECT_EQ(Read(file), "done\n");
}

TEST(Supervise, EndsProcessesThatNobodyWaitsFor) {
  AdoptOrphans();
  const Ending ending =
      RunShell("sleep 60 & sleep 60 & exit 0", {.whole_tree = true, .patience = milliseconds(100)});
  ASSERT_TRUE(ending.stop.has_value());
  ASSERT_TRUE(std::holds_alternative<LeftRunning>(*ending.stop));
  EXPECT_EQ(std::get<LeftRunning>(*ending.stop).processes, 2);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "none is left";
}

TEST(Supervise, StopsAProgramThatExhaustsTheHost) {
  HostMemoryWatch watch(48ULL << 20);
  const Ending ending =
      RunShell("x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 60", {.host_memory = &watch});
  ASSERT_TRUE(ending.stop.has_value());
  EXPECT_TRUE(std::holds_alternative<HostMemoryWatch::Shortage>(*ending.stop));
  EXPECT_EQ(ExitCode(ending.wait_status), 128 + SIGKILL);
}

TEST(Supervise, HandsOnASignalSentToTheWrapperAlone) {
  // The child of a helper process is what gets it: the test itself must not.
  const pid_t wrapper = fork();
  if (wrapper == 0) {
    Environment environment(environ);
    const SignalQueue signals;
    const Child child = Launch({.command = {"sh", "-c", "trap 'exit 9' USR1; while :; do sleep 0.05; done"}},
                               environment, signals);
    usleep(200'000);
    kill(getpid(), SIGUSR1);
    _exit(ExitCode(Supervise(child, signals, {.time_out = milliseconds(10'000)}).wait_status));
  }
  int status = 0;
  ASSERT_EQ(waitpid(wrapper, &status, 0), wrapper);
  EXPECT_EQ(ExitCode(status), 9);
}

TEST(Launch, EndsTheProgramWhenTheWrapperIsKilled) {
  const Folder folder;
  const std::string file = (folder / "pid").string();
  const pid_t wrapper = fork();
  if (wrapper == 0) {
    Environment environment(environ);
    const SignalQueue signals;
    const Child child = Launch({.command = {"sh", "-c", "echo $$ > '" + file + "'; exec sleep 60"},
                                .signal_on_wrapper_death = SIGTERM},
                               environment, signals);
    (void)Supervise(child, signals, {});
    _exit(0);
  }
  AdoptOrphans();
  for (int tries = 0; tries < 200 && Read(file).empty(); ++tries) usleep(20'000);
  const auto program = static_cast<pid_t>(std::atoi(Read(file).c_str()));
  ASSERT_GT(program, 0);
  kill(wrapper, SIGKILL);
  ASSERT_EQ(waitpid(wrapper, nullptr, 0), wrapper);
  int status = 0;
  ASSERT_EQ(waitpid(program, &status, 0), program) << "adopted by this test";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

}  // namespace
}  // namespace vramtrace::launch
