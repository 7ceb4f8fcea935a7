#include <CLI/CLI.hpp>
#include <string>

#include "analyzer/cli/subcommand.h"

namespace vramtrace::cli {
namespace {

class DumpCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "dump"; }
  [[nodiscard]] std::string_view Summary() const override { return "Print a trace, one line a packet"; }
  [[nodiscard]] std::string_view Example() const override { return "vramtrace dump"; }
  void AddOptions(CLI::App& app) override { app.add_option("trace", trace_, "A trace file"); }
  [[nodiscard]] int Run() override { return kBadInput; }

 private:
  std::string trace_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeDumpCommand() { return std::make_unique<DumpCommand>(); }

}  // namespace vramtrace::cli
