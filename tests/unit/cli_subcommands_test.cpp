// Every row of subcommands.def has a case here: a new subcommand fails this test until it has one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/cli/subcommand.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome Call(std::vector<const char*> words) {
  words.insert(words.begin(), "vramtrace");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = RunCommandLine(static_cast<int>(words.size()), words.data());
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

// A wrong call of each subcommand, and what it must say and return.
struct WrongCall {
  std::vector<const char*> words;
  int code;
  const char* says;
};

const std::map<std::string, WrongCall>& WrongCalls() {
  static const std::map<std::string, WrongCall> calls = {
      {"record", {{"record"}, kUsage, "no command to run"}},
      {"dry-run", {{"dry-run", "--gpu", "rtx4900", "--", "true"}, kUsage, "rtx4090"}},
      {"watch", {{"watch"}, kUsage, "no command to run"}},
      {"fit", {{"fit", "--gpu", "rtx4090", "--", "python", "t.py"}, kUsage, "{batch}"}},
      {"analyze", {{"analyze", "/no/such.vtrace"}, kBadInput, "/no/such.vtrace"}},
      {"forecast", {{"forecast", "/no/such.vtrace"}, kBadInput, "/no/such.vtrace"}},
      {"diff", {{"diff", "/no/such.vtrace", "/no/such.vtrace"}, kBadInput, "/no/such.vtrace"}},
      {"view", {{"view", "/no/such.vtrace"}, kBadInput, "/no/such.vtrace"}},
      {"dump", {{"dump", "/no/such.vtrace"}, kBadInput, "/no/such.vtrace"}},
      {"estimate", {{"estimate", "/no/such/config.json"}, kBadInput, "/no/such/config.json"}},
      {"doctor", {{"doctor", "--sold-as", "rtx4900"}, kUsage, "rtx4090"}},
      {"gpus", {{"gpus", "rtx4900"}, kUsage, "rtx4090"}},
  };
  return calls;
}

TEST(Subcommands, EachHasACase) {
  std::set<std::string> names;
  for (const auto& command : MakeSubcommands()) {
    EXPECT_TRUE(names.insert(std::string(command->Name())).second) << command->Name() << " is there twice";
    EXPECT_TRUE(WrongCalls().contains(std::string(command->Name())))
        << command->Name() << " has no case here";
  }
  EXPECT_EQ(names.size(), WrongCalls().size());
}

TEST(Subcommands, EachHelpsWithAnExample) {
  for (const auto& command : MakeSubcommands()) {
    const std::string name(command->Name());
    const Outcome help = Call({name.c_str(), "--help"});
    EXPECT_EQ(help.code, kDone) << name;
    EXPECT_THAT(help.out, HasSubstr(std::string(command->Summary())));
    EXPECT_THAT(help.out, HasSubstr("Example:\n  " + std::string(command->Example())));
    EXPECT_THAT(std::string(command->Example()), HasSubstr("vramtrace " + name));
    EXPECT_EQ(help.out.find("-- COMMAND [ARGUMENTS]") != std::string::npos, command->TakesProgram()) << name;
    EXPECT_FALSE(command->Summary().ends_with('.')) << name;
  }
}

TEST(Subcommands, EachExplainsAWrongCall) {
  for (const auto& [name, call] : WrongCalls()) {
    const Outcome outcome = Call(call.words);
    EXPECT_EQ(outcome.code, call.code) << name;
    EXPECT_THAT(outcome.err, HasSubstr(call.says)) << name;
    EXPECT_EQ(outcome.out, "") << name << ": results only go to stdout";
  }
}

TEST(Subcommands, EachRefusesAnUnknownOption) {
  for (const auto& command : MakeSubcommands()) {
    const std::string name(command->Name());
    const Outcome outcome = Call({name.c_str(), "--no-such-option"});
    EXPECT_EQ(outcome.code, kUsage) << name;
    EXPECT_THAT(outcome.err, HasSubstr("--")) << name;
  }
}

TEST(CommandLine, NamesAnUnknownSubcommandAndTheNearOnes) {
  const std::map<const char*, const char*> slips = {
      {"anlyze", "'anlyze'; did you mean analyze?"}, {"dryrun", "'dryrun'; did you mean dry-run?"},
      {"dmup", "'dmup'; did you mean dump?"},        {"train.py", "'train.py'; the commands are record, "},
      {"vew", "'vew'; did you mean view?"},          {"\x1b[31m", "there is no command '"}};
  for (const auto& [word, says] : slips) {
    const Outcome outcome = Call({word, "--format", "json"});
    EXPECT_EQ(outcome.code, kUsage) << word;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CommandLine, NeedsASubcommandAndKnowsItsVersion) {
  EXPECT_EQ(Call({}).code, kUsage);
  EXPECT_EQ(Call({"no-such-command"}).code, kUsage);
  EXPECT_THAT(Call({"--version"}).out, HasSubstr("vramtrace " VRAMTRACE_VERSION));
  const Outcome help = Call({"--help"});
  for (const auto& command : MakeSubcommands())
    EXPECT_THAT(help.out, HasSubstr(std::string(command->Name())));
}

TEST(DryRun, SaysWhichValueIsWrong) {
  const std::map<const char*, const char*> wrong = {
      {"--budget", "lots"}, {"--timeout", "soon"},    {"--steps", "0"},
      {"--total", "-4"},    {"--host-memory", "1XB"}, {"--protect", "/no/such/folder"}};
  for (const auto& [option, value] : wrong) {
    const Outcome outcome = Call({"dry-run", "--gpu", "rtx4090", option, value, "--", "true"});
    EXPECT_EQ(outcome.code, kUsage) << option;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(option) + " " + value));
  }
  EXPECT_EQ(Call({"dry-run", "--", "true"}).code, kUsage) << "--gpu is needed";
  EXPECT_EQ(Call({"dry-run", "--gpu", "rtx4090", "--count", "0", "--", "true"}).code, kUsage);
  EXPECT_EQ(Call({"dry-run", "--gpu", "rtx4090"}).code, kUsage) << "no program";
}

TEST(Gpus, ListsTheWholeCatalogue) {
  const Outcome text = Call({"gpus"});
  EXPECT_EQ(text.code, kDone);
  const Outcome json = Call({"gpus", "--format", "json"});
  const auto rows = nlohmann::json::parse(json.out);
  ASSERT_EQ(rows.size(), catalogue::Gpus().size());
  for (size_t at = 0; at < rows.size(); ++at) {
    const catalogue::Gpu& gpu = catalogue::Gpus()[at];
    EXPECT_EQ(rows[at]["id"], gpu.id);
    EXPECT_THAT(text.out, HasSubstr(std::string(gpu.id) + " "));
    EXPECT_THAT(text.out, HasSubstr(std::string(gpu.device_name)));
    if (gpu.cuda_total_bytes) {
      EXPECT_EQ(rows[at]["cuda_total"]["bytes"], *gpu.cuda_total_bytes);
    }
  }
}

TEST(Gpus, ShowsOneByAnyOfItsNames) {
  for (const char* name : {"rtx4090", "RTX 4090", "NVIDIA GeForce RTX 4090"}) {
    const Outcome outcome = Call({"gpus", name});
    EXPECT_EQ(outcome.code, kDone) << name;
    EXPECT_THAT(outcome.out, HasSubstr("25382879232 bytes; measured"));
    EXPECT_THAT(outcome.out, HasSubstr("128 SMs"));
  }
  EXPECT_EQ(nlohmann::json::parse(Call({"gpus", "l4", "--format", "json"}).out)["device_name"], "NVIDIA L4");
  EXPECT_EQ(Call({"gpus", "--format", "xml"}).code, kUsage);
  EXPECT_EQ(Call({"gpus", "show", "RTX", "4090"}).out, Call({"gpus", "rtx4090"}).out);
  EXPECT_THAT(Call({"gpus", "show"}).err, HasSubstr("needs the name"));
}

TEST(Gpus, FiltersAndSorts) {
  const auto rows = [](std::vector<const char*> words) {
    words.insert(words.begin(), "gpus");
    words.insert(words.end(), {"--format", "json"});
    return nlohmann::json::parse(Call(words).out);
  };
  const auto large = rows({"--memory", "100GB", "--sort", "memory"});
  ASSERT_GE(large.size(), 5u);
  EXPECT_EQ(large[0]["id"], "gb300");
  for (const auto& row : large) EXPECT_GE(row["cuda_total"]["bytes"], 100'000'000'000u);
  for (const auto& row : rows({"--max-price", "2", "--currency", "CNY"})) EXPECT_FALSE(row["prices"].empty());
  EXPECT_EQ(rows({"--architecture", "volta"}).size(), 2u);
  EXPECT_EQ(Call({"gpus", "--sort", "beauty"}).code, kUsage);
  EXPECT_THAT(Call({"gpus", "--memory", "lots"}).err, HasSubstr("--memory lots"));
  const Outcome prices = Call({"gpus", "--prices", "/no/such.csv"});
  EXPECT_EQ(prices.code, kBadInput);
  EXPECT_THAT(prices.err, HasSubstr("/no/such.csv"));
}

}  // namespace
}  // namespace vramtrace::cli
