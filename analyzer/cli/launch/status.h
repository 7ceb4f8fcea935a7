#pragma once
// What the end of a child means for the wrapper that ran it.

namespace vramtrace::launch {

// Exit codes of the wrappers themselves, beside the child's own. 126 and 127 are the shell's, 124 is
// timeout(1)'s.
inline constexpr int kExitCheckFailed = 1;  // a check failed: --budget, or a dry run stopped for safety
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeOut = 124;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

// The code a shell shows for a wait status: the exit status, or 128 + the signal's number.
[[nodiscard]] int ExitCode(int wait_status);

// Ends as the child ended. A child that died of a signal people send on purpose (interrupt, hang-up,
// terminate, quit, broken pipe) makes the wrapper die of the same one, without a core file, so that a shell
// loop or a batch system that asks for the signal sees it; other deaths (a crash, SIGKILL) return 128 + n,
// because they are not ours.
[[nodiscard]] int PassOn(int wait_status);

}  // namespace vramtrace::launch
