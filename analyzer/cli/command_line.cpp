#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "analyzer/cli/subcommand.h"
#include "analyzer/symbolize/names.h"
#include "preload/catalogue/edit_distance.h"

namespace vramtrace::cli {

#define VRAMTRACE_SUBCOMMAND(make) std::unique_ptr<Subcommand> make();
#include "analyzer/cli/subcommands.def"
#undef VRAMTRACE_SUBCOMMAND

std::vector<std::unique_ptr<Subcommand>> MakeSubcommands() {
  std::vector<std::unique_ptr<Subcommand>> commands;
#define VRAMTRACE_SUBCOMMAND(make) commands.push_back(make());
#include "analyzer/cli/subcommands.def"
#undef VRAMTRACE_SUBCOMMAND
  return commands;
}

namespace {

// CLI11's own codes are many; ours are the four of ExitCode. Help and version are not errors.
int ReportParseError(const CLI::App& app, const CLI::ParseError& error) {
  const int code = app.exit(error);
  return code == 0 ? kDone : kUsage;
}

// Hands what follows `--` to the wrapper that was named, and returns how many words the parser may see.
int SplitOffProgram(int argc, const char* const* argv,
                    const std::vector<std::unique_ptr<Subcommand>>& commands) {
  for (const auto& command : commands) {
    if (argc < 2 || argv[1] != command->Name() || !command->TakesProgram()) continue;
    for (int at = 2; at < argc; ++at) {
      if (std::string_view(argv[at]) != "--") continue;
      command->SetProgram({argv + at + 1, argv + argc});
      return at;
    }
  }
  return argc;
}

// Says so of a word that is no subcommand (CLI11 would call it an extra argument).
bool SayUnknownSubcommand(std::string_view word, const std::vector<std::unique_ptr<Subcommand>>& commands) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> near;
  size_t nearest = std::max(size_t{2}, word.size() / 3);  // farther than that is no slip
  for (const auto& command : commands) {
    if (command->Name() == word) return false;
    names.push_back(command->Name());
    const size_t distance = catalogue::EditDistance(word, command->Name());
    if (distance < nearest) near.clear();
    if (distance <= nearest) near.push_back(command->Name());
    nearest = std::min(nearest, distance);
  }
  fmt::print(stderr, "vramtrace: there is no command '{}'; {}\n", symbolize::Printable(word),
             near.empty() ? fmt::format("the commands are {}", fmt::join(names, ", "))
                          : fmt::format("did you mean {}?", fmt::join(near, " or ")));
  return true;
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  CLI::App app("What fills the memory of a GPU, from bytes that were recorded.", "vramtrace");
  app.set_version_flag("--version", std::string("vramtrace ") + VRAMTRACE_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);

  const std::vector<std::unique_ptr<Subcommand>> commands = MakeSubcommands();
  if (argc > 1 && argv[1][0] != '-' && SayUnknownSubcommand(argv[1], commands)) return kUsage;
  int code = kDone;
  for (const auto& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command->Name()), std::string(command->Summary()));
    sub->footer(fmt::format("Example:\n  {}", command->Example()));
    command->AddOptions(*sub);
    sub->callback([&code, run = command.get()] { code = run->Run(); });
  }
  try {
    app.parse(SplitOffProgram(argc, argv, commands), argv);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "vramtrace: {}\n", error.what());
    return kBadInput;
  }
  return code;
}

}  // namespace vramtrace::cli
