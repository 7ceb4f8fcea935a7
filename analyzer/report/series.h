#pragma once
// A device's memory over its run: step by step, and what sets its local peaks apart.

#include "analyzer/attribution/breakdown.h"
#include "analyzer/report/report.pb.h"
#include "analyzer/timeline/scan.h"

namespace vramtrace::report {

// Times are since `first_time_ns`.
void FillStepRows(const timeline::DeviceScan& scan, uint64_t first_time_ns, v1::DeviceReport* device);

// Classes at a local peak against those at the highest, the largest change first.
void FillChanges(const attribution::Breakdown& here, const attribution::Breakdown& highest,
                 v1::LocalPeak* peak);

}  // namespace vramtrace::report
