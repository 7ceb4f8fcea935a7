#pragma once
// What a reader of the report must know about its evidence: losses, what was switched off, contradictions.

#include "analyzer/report/report.pb.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/trace/trace_file.h"

namespace vramtrace::report {

// Appends to `report->notes()`. Reads the devices that the report already has.
void AddNotes(const trace::TraceFile& file, const model::Tables& tables, const timeline::Scan& scan,
              v1::Report* report);

}  // namespace vramtrace::report
