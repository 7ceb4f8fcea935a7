#pragma once
// The viewer's page with a trace's data in it: one HTML file that needs nothing else.

#include <string>
#include <string_view>

#include "analyzer/trace/result.h"

namespace vramtrace::viewer_data {

// The page that viewer/ builds; empty in a build without Node.
[[nodiscard]] std::string_view PageTemplate();

// `file` (see columns.h) compressed and written into the template's data element, as base64: nothing of it
// can end the element or run. Empty when the template is.
[[nodiscard]] std::string MakePage(std::string_view file);

// gzip of `bytes`, with a zero time stamp so that equal input gives equal output.
[[nodiscard]] std::string Gzip(std::string_view bytes);
[[nodiscard]] std::string Base64(std::string_view bytes);

}  // namespace vramtrace::viewer_data
