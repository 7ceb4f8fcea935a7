#pragma once
// A trace file to a report: runs every stage.

#include <memory>
#include <string>

#include "analyzer/report/report.pb.h"
#include "analyzer/trace/result.h"

namespace vramtrace::report {

struct BuildOptions {
  // How many live allocations each breakdown lists; 0: all.
  size_t allocations = 0;
};

struct BuiltReport {
  v1::Report report;
  bool damaged = false;  // the file was cut or changed after it was written
};

// Errors are what leaves nothing to report: see trace::TraceFile::Open, and a trace without events.
[[nodiscard]] trace::Result<BuiltReport> BuildReport(const std::string& path, const BuildOptions& options);

}  // namespace vramtrace::report
