#pragma once
// A live set by module, tensor, stack, library, size, age and segment.

#include "analyzer/attribution/breakdown.h"
#include "analyzer/report/report.pb.h"

namespace vramtrace::report {

void FillViews(const model::Tables& tables, const timeline::Snapshot& snapshot,
               const attribution::Breakdown& breakdown, v1::Views* out);

}  // namespace vramtrace::report
