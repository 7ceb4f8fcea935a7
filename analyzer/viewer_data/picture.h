#pragma once
// The timeline and the flame graph of the peak as one SVG file: for a report, a merge request, a slide.

#include <string>

#include "analyzer/viewer_data/build.h"

namespace vramtrace::viewer_data {

// One pair of pictures for each device that holds anything. Names are escaped; nothing in it runs.
[[nodiscard]] std::string DrawPicture(const ViewerData& data);

}  // namespace vramtrace::viewer_data
