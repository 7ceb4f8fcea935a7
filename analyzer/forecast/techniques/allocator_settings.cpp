// Settings of the caching allocator: the requests stay, what serves them changes.

#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {

bool HasExpandableSegments(const Stream& stream) {
  return stream.facts.allocator_settings.find("expandable_segments:True") != std::string::npos;
}

Edited KeepStream(const Stream& stream, const TechniqueOptions& /*options*/) { return stream; }

void ExpandSegments(ReplayOptions* options, const TechniqueOptions& /*chosen*/) {
  options->settings.expandable_segments = true;
}

}  // namespace vramtrace::forecast
