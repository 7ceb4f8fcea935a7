#pragma once
// A report as text: one screen, 100 columns at most.

#include <string>
#include <vector>

#include "analyzer/report/report.pb.h"

namespace vramtrace::report {

struct TextOptions {
  bool color = false;
  size_t allocations = 10;              // live allocations to list
  std::vector<std::string> views = {};  // of ViewNames(), instead of the largest allocations
};

[[nodiscard]] std::string ToText(const v1::Report& report, const TextOptions& options);

}  // namespace vramtrace::report
