#pragma once
// Makes the runs of a search: fills in the value, keeps what was run, and knows which values are accepted.

#include <string>
#include <vector>

#include "analyzer/fit/report.h"
#include "analyzer/fit/search.h"
#include "analyzer/fit/values.h"

namespace vramtrace::fit {

// Enough for any card: the two recordings must not die.
inline constexpr Bytes kUnlimited = Bytes{1} << 40;

class Laboratory {
 public:
  Laboratory(const SearchOptions& options, Runner* runner, const Progress& progress, FitReport* report)
      : options_(options),
        runner_(runner),
        progress_(progress),
        report_(report),
        values_(options.from, options.to) {}

  // A dry run of one value, on the target or (as large as a card can be) without a limit. Completed and
  // failed ones teach which values are accepted.
  RunResult Run(uint64_t value, const Target& target, bool unlimited, std::string_view why);

  [[nodiscard]] Values& values() { return values_; }
  [[nodiscard]] const SearchOptions& options() const { return options_; }
  [[nodiscard]] FitReport& report() { return *report_; }
  // "batch 8"
  [[nodiscard]] std::string Name(uint64_t value) const;
  // A run that ends the search: nothing for one that says something about the value.
  [[nodiscard]] static std::optional<Problem> ProblemOf(const RunResult& run, const std::string& name);

 private:
  const SearchOptions& options_;
  Runner* runner_;
  const Progress& progress_;
  FitReport* report_;
  Values values_;
};

}  // namespace vramtrace::fit
