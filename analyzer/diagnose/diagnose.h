#pragma once
// The diagnoses of a trace, put into its report.

#include "analyzer/diagnose/evidence.h"
#include "analyzer/report/report.pb.h"

namespace vramtrace::diagnose {

struct Options {
  bool predict = true;  // the peak after a change, by replays of the run
};

// Fills `report->diagnoses`, a row a device. At most `kMostShown` are marked as shown; their own bytes and
// the rest add up to what the device held at the instant.
inline constexpr int kMostShown = 3;
void Diagnose(const Source& source, const Options& options, report::v1::Report* report);

struct TextOptions {
  bool color = false;
  bool explain = false;  // every diagnosis, with what was looked for
};
// Empty where no diagnosis has a verdict and `explain` is off.
[[nodiscard]] std::string Text(const report::v1::Report& report, const TextOptions& options);

}  // namespace vramtrace::diagnose
