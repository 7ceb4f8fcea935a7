#pragma once
// A trace as lines, one a packet, in the order of events.
//
//   12 +0.004211 t1 block_allocate address=0x7f2000000000 bytes=1024 requested=1000 stack=3
//   autograd.sequence_number=5
//
// Sequence number ("-" for a packet that has none), seconds since the trace's base time, thread, kind, fields
// by the names of vramtrace.proto. Fields that are zero are left out. `address_delta` is printed as the
// address; an id of a string as the string itself, in quotes.

#include <functional>
#include <string>
#include <string_view>

#include "analyzer/trace/load_statistics.h"
#include "analyzer/trace/result.h"

namespace vramtrace::report {

// Calls `line` for every packet. Answers what was skipped on the way.
[[nodiscard]] trace::Result<trace::LoadStatistics> DumpTrace(
    const std::string& path, const std::function<void(std::string_view)>& line);

}  // namespace vramtrace::report
