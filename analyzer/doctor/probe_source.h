#pragma once

namespace vramtrace::doctor {

// The text of probe.py.
extern const char* const kProbeSource;

}  // namespace vramtrace::doctor
