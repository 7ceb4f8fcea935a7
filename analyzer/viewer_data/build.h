#pragma once
// A trace to what the viewer shows: the report, curves of memory over time, blocks with their lives, stacks.

#include <string>

#include "analyzer/report/build.h"
#include "analyzer/trace/result.h"

namespace vramtrace::viewer_data {

struct DataOptions {
  // Up to this many blocks all are written; of a longer trace those alive at chosen instants.
  size_t blocks = 400'000;
};

struct ViewerData {
  std::string file;  // see columns.h
  bool complete = true;
  size_t blocks = 0;  // written
  report::BuiltReport report;
};

// Errors are those of report::BuildReport.
[[nodiscard]] trace::Result<ViewerData> BuildViewerData(const std::string& path, const DataOptions& options);

}  // namespace vramtrace::viewer_data
