#pragma once
// A run of several processes: a line of each, and which one to explain.

#include <cstddef>
#include <span>
#include <string>

#include "analyzer/report/report.pb.h"

namespace vramtrace::report {

// The process that tells most: the first that ended out of memory, else the one whose fullest device was
// fullest (device used where the device was asked, else reserved, else allocated bytes). `reports` is not
// empty.
[[nodiscard]] size_t MostTelling(std::span<const v1::Report> reports);

// A headline and a table, a line for each device of each process in the order of ranks.
[[nodiscard]] std::string RunText(std::span<const v1::Report> reports);

// "Rank 1 ran out of memory", "Process 4711 has the highest peak": why this one is explained.
[[nodiscard]] std::string WhyThisOne(std::span<const v1::Report> reports, size_t chosen);

}  // namespace vramtrace::report
