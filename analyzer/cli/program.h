#pragma once
// What the wrappers share beyond analyzer/cli/launch: the user's command line, and the lines said at the end.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "analyzer/cli/launch/environment.h"
#include "analyzer/cli/launch/traces.h"
#include "analyzer/cli/subcommand.h"

namespace vramtrace::cli {

// Ends the usage line of --help with the program's command line, in brackets where it may be left out.
void AddProgramToUsage(CLI::App& app, bool optional);

// A subcommand that runs the user's program.
class ProgramCommand : public Subcommand {
 public:
  [[nodiscard]] bool TakesProgram() const override { return true; }
  void SetProgram(const std::vector<std::string>& words) override;
  void AddOptions(CLI::App& app) override;

 protected:
  // The program's command line: what followed `--`, or without one the first word that is not an option and
  // everything after it. Empty: there is none, which has been said.
  [[nodiscard]] std::vector<std::string> Program() const;

 private:
  CLI::App* app_ = nullptr;
  bool has_separator_ = false;
  std::vector<std::string> after_separator_;
};

// "vramtrace: <line>" on stderr.
void Say(std::string_view line);

// What a run left behind.
struct LeftTraces {
  std::vector<launch::Trace> traces;
  std::filesystem::path folder;  // of all of them
  std::string why_none;          // where there are none
  bool gathered = false;         // the folder holds them and nothing else
};

// Several traces of a run that the user gave no place are gathered in a folder. `unwritten`: it is known that
// a trace could not be written, and why has been said.
[[nodiscard]] LeftTraces CollectTraces(const launch::TraceOutput& output,
                                       std::span<const std::string> program,
                                       const launch::Environment& environment, bool unwritten);

// Says where the traces are and what to type next, or that there are none and why that may be.
void SayTraces(const LeftTraces& left);

// --format json of a wrapper: `summary` and the traces as one line, the last one of stdout.
void PrintSummary(nlohmann::ordered_json summary, const LeftTraces& left);

}  // namespace vramtrace::cli
