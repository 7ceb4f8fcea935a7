#pragma once
// A trace file to a report: runs every stage.

#include <memory>
#include <optional>
#include <string>

#include "analyzer/report/report.pb.h"
#include "analyzer/timeline/instants.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/trace/result.h"

namespace vramtrace::report {

struct BuildOptions {
  // How many live allocations each breakdown lists; 0: all.
  size_t allocations = 0;
  // Explain this instant too (DeviceReport.at_instant).
  std::optional<timeline::InstantQuery> at = std::nullopt;
  // Fill Breakdown.views of what is explained, and what sets local peaks apart.
  bool views = false;
};

struct BuiltReport {
  v1::Report report;
  bool damaged = false;  // the file was cut or changed after it was written
  // What the report was made from, for who wants more of the same trace.
  std::shared_ptr<trace::TraceFile> file;
  std::shared_ptr<const model::Tables> tables;
  std::shared_ptr<const model::StackTable> stacks;
  std::shared_ptr<const timeline::Scan> scan;
};

// Errors are what leaves nothing to report: see trace::TraceFile::Open, and a trace without events.
[[nodiscard]] trace::Result<BuiltReport> BuildReport(const std::string& path, const BuildOptions& options);

}  // namespace vramtrace::report
