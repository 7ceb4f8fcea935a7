#pragma once
// The views of a live set as tables, and which there are.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analyzer/report/report.pb.h"

namespace vramtrace::report {

// module, tensor, stack, library, size, age, segment, peak, step.
[[nodiscard]] std::vector<std::string> ViewNames();

struct ViewOptions {
  bool color = false;
  size_t rows = 20;  // of each table
};

// The named views, one after the other. `breakdown` is one of `device` that has its views.
[[nodiscard]] std::string ViewsText(const v1::DeviceReport& device, const v1::Breakdown& breakdown,
                                    std::span<const std::string> views, const ViewOptions& options);

// Input of flame-graph programs: a stack a line, frames separated by semicolons, and its bytes.
[[nodiscard]] std::string FoldedStacks(const v1::Views& views);

}  // namespace vramtrace::report
