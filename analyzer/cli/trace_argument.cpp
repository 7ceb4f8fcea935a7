#include "analyzer/cli/trace_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;

// Traces directly in `folder`, newest first.
std::vector<fs::path> TracesIn(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".vtrace" || !it->is_regular_file(error)) continue;
    found.emplace_back(it->last_write_time(error), it->path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  paths.reserve(found.size());
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

trace::Result<std::string> ChooseTrace(const std::string& argument) {
  std::error_code error;
  const bool folder = !argument.empty() && fs::is_directory(argument, error);
  if (!argument.empty() && !folder) return argument;
  const std::vector<fs::path> traces = TracesIn(folder ? fs::path(argument) : fs::path("."));
  if (traces.empty()) {
    return trace::Error{
        folder ? argument : ".", std::nullopt,
        "the folder holds no trace (*.vtrace). Record one: vramtrace record -- python train.py"};
  }
  if (folder && traces.size() > 1) {
    return trace::Error{argument, std::nullopt,
                        fmt::format("the folder holds {} traces; name one of them, the newest is {}.",
                                    traces.size(), traces.front().string())};
  }
  std::string chosen = traces.front().lexically_normal().string();
  fmt::print(stderr, "vramtrace: {} {}\n", folder ? "the folder's trace is" : "the newest trace here is",
             chosen);
  return chosen;
}

trace::Result<std::vector<std::string>> ChooseTraces(const std::string& argument) {
  std::error_code error;
  if (!argument.empty() && fs::is_directory(argument, error)) {
    std::vector<std::string> names;
    for (const fs::path& path : TracesIn(argument)) names.push_back(path.string());
    std::sort(names.begin(), names.end());
    if (names.size() > 1) return names;
  }
  const trace::Result<std::string> one = ChooseTrace(argument);
  if (!one.ok()) return one.error();
  return std::vector<std::string>{one.value()};
}

}  // namespace vramtrace::cli
