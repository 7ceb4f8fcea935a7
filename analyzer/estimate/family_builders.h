#pragma once
// The functions of families.def; each writes its family's operations onto the tape, or leaves an error in the
// config.

#include "analyzer/estimate/families.h"

namespace vramtrace::estimate {

#define VRAMTRACE_FAMILY(type, name, build, head) void build(Config& config, Tape& tape, Head wanted);
#include "analyzer/estimate/families.def"
#undef VRAMTRACE_FAMILY

}  // namespace vramtrace::estimate
