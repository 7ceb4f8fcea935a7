#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/report/dump.h"

namespace vramtrace::cli {
namespace {

class DumpCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "dump"; }
  [[nodiscard]] std::string_view Summary() const override { return "Print a trace, one line a packet"; }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace dump vramtrace-train.py-4711.vtrace | grep driver_allocate";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("trace", trace_, "A trace file; the newest *.vtrace here when none is given");
  }

  [[nodiscard]] int Run() override {
    const trace::Result<std::string> path = ChooseTrace(trace_);
    if (!path.ok()) return Fail(path.error());
    const trace::Result<trace::LoadStatistics> dumped =
        report::DumpTrace(path.value(), [](std::string_view line) {
          std::fwrite(line.data(), 1, line.size(), stdout);
          std::fputc('\n', stdout);
        });
    if (!dumped.ok()) return Fail(dumped.error());
    const trace::LoadStatistics& statistics = dumped.value();
    for (size_t i = 0; i < trace::kStatisticCount; ++i) {
      const auto statistic = static_cast<trace::Statistic>(i);
      if (statistics.Get(statistic).count == 0) continue;
      fmt::print(stderr, "vramtrace: {}: {}\n", path.value(), statistics.Sentence(statistic));
    }
    return statistics.Damaged() ? kBadInput : kDone;
  }

 private:
  static int Fail(const trace::Error& error) {
    fmt::print(stderr, "vramtrace: {}\n", error.Sentence());
    return kBadInput;
  }

  std::string trace_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeDumpCommand() { return std::make_unique<DumpCommand>(); }

}  // namespace vramtrace::cli
