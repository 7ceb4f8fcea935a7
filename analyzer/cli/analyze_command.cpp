#include <CLI/CLI.hpp>
#include <string>

#include "analyzer/cli/subcommand.h"

namespace vramtrace::cli {
namespace {

class AnalyzeCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "analyze"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Explain the peak of a trace, or why it ran out of memory";
  }
  [[nodiscard]] std::string_view Example() const override { return "vramtrace analyze"; }
  void AddOptions(CLI::App& app) override { app.add_option("trace", trace_, "A trace file"); }
  [[nodiscard]] int Run() override { return kBadInput; }

 private:
  std::string trace_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeAnalyzeCommand() { return std::make_unique<AnalyzeCommand>(); }

}  // namespace vramtrace::cli
