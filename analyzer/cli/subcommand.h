#pragma once
// One subcommand of `vramtrace`: a row of subcommands.def and one file, <name>_command.cpp.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace vramtrace::cli {

// The exit codes that a user's script may rely on.
enum ExitCode : int {
  kDone = 0,
  kCheckFailed = 1,  // a check that the user asked for failed: --strict, --budget
  kUsage = 2,        // the command line is wrong
  kBadInput = 3,     // a file is: the message names it, the offset and what was expected
};

class Subcommand {
 public:
  virtual ~Subcommand() = default;

  [[nodiscard]] virtual std::string_view Name() const = 0;
  // One line, without a full stop, for `vramtrace --help`.
  [[nodiscard]] virtual std::string_view Summary() const = 0;
  // One command line that works as it stands, shown under `--help`.
  [[nodiscard]] virtual std::string_view Example() const = 0;

  // Declares options and positionals. What they bind to must live in this object.
  virtual void AddOptions(CLI::App& app) = 0;

  // A wrapper runs a program: everything after the first `--` is the program's command line, which the parser
  // never sees. SetProgram is called with it before Run when there is a `--`.
  [[nodiscard]] virtual bool TakesProgram() const { return false; }
  virtual void SetProgram(const std::vector<std::string>& /*words*/) {}

  // Runs after the command line was accepted. Returns an ExitCode, or for a wrapper the child's own status.
  // Results go to stdout, everything else to stderr.
  [[nodiscard]] virtual int Run() = 0;
};

// Every subcommand, in the order of subcommands.def, which is the order of `--help`.
[[nodiscard]] std::vector<std::unique_ptr<Subcommand>> MakeSubcommands();

// The whole command: parses `argv`, runs one subcommand, returns the exit code. What `main` calls.
[[nodiscard]] int RunCommandLine(int argc, const char* const* argv);

}  // namespace vramtrace::cli
