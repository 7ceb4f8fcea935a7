// Every block of a trace as a line, in the order of allocation: bytes, requested bytes, class, rule, and the
// names of its tensor, separated by tabs. What the report says of the blocks alive at one instant, for all of
// them.

#include "analyzer/attribution/lives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "analyzer/report/build.h"

namespace {

using vramtrace::attribution::Life;

struct Line {
  uint64_t ordinal = 0;
  std::string text;
};

std::string Text(const Life& life) {
  const vramtrace::attribution::Verdict& verdict = life.explained.verdict;
  std::string text = fmt::format("{}\t{}\t{}\t{}", life.live.block.bytes, life.live.block.requested,
                                 KeyOf(verdict.memory_class), verdict.rule);
  for (const std::string& name : life.explained.names) {
    const std::string& key = life.explained.state_key;
    text += '\t' + name + (key.empty() ? "" : "." + key);
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: {} TRACE\n", arguments[0]);
    return 2;
  }
  const auto built = vramtrace::report::BuildReport(arguments[1], {1});
  if (!built.ok()) {
    fmt::print(stderr, "{}\n", built.error().Sentence());
    return 3;
  }
  const vramtrace::report::BuiltReport& read = built.value();
  std::vector<Line> lines;
  vramtrace::attribution::ForEachLife(read.file, read.tables, read.stacks, *read.scan, [&](const Life& life) {
    lines.push_back({life.ordinal, Text(life)});
  });
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.ordinal < b.ordinal; });
  for (const Line& line : lines) fmt::print("{}\n", line.text);
  return 0;
}
