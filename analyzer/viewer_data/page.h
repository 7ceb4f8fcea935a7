#pragma once
// The viewer's page with the data of traces in it: one HTML file that needs nothing else.

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/trace/result.h"

namespace vramtrace::viewer_data {

// The page that viewer/ builds; empty in a build without Node.
[[nodiscard]] std::string_view PageTemplate();

// `files` (see columns.h) compressed and written into data elements of the template, as base64: nothing of
// them can end an element or run. Empty when the template is.
[[nodiscard]] std::string MakePage(const std::vector<std::string>& files);

// The page that asks the server which it came from for its data. Empty when the template is.
[[nodiscard]] std::string MakeServedPage();

// gzip of `bytes`, with a zero time stamp so that equal input gives equal output.
[[nodiscard]] std::string Gzip(std::string_view bytes);
[[nodiscard]] std::string Base64(std::string_view bytes);

}  // namespace vramtrace::viewer_data
