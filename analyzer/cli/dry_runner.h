#pragma once
// Dry runs for a search: quiet, each with a folder of its own for its trace and what the program prints.

#include <filesystem>
#include <string>

#include "analyzer/cli/dry_run_options.h"
#include "analyzer/fit/runner.h"

namespace vramtrace::cli {

class DryRunner final : public fit::Runner {
 public:
  // `folder` exists; traces and output stay there.
  DryRunner(const DryRunOptions& options, std::filesystem::path folder)
      : options_(options), folder_(std::move(folder)) {}

  [[nodiscard]] fit::RunResult Run(const fit::RunRequest& request) override;

 private:
  const DryRunOptions& options_;
  std::filesystem::path folder_;
  int runs_ = 0;
};

}  // namespace vramtrace::cli
