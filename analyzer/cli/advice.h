#pragma once

#include <string>

#include "analyzer/report/build.h"

namespace vramtrace::cli {

// Where the run died of memory or came within a tenth of its card, fills the report's advice and answers it
// as text. Where the trace holds too little for a forecast, the text says how to get one. Empty: no advice
// needed. `built` must hold what the report was made from.
[[nodiscard]] std::string Advise(report::BuiltReport* built);

// The commands that forecast a run which died before its second step: the program on a simulated card that is
// large enough. Empty where the run got further or did not run out of memory.
[[nodiscard]] std::string CommandsForWholeRun(const report::v1::Report& report);

}  // namespace vramtrace::cli
