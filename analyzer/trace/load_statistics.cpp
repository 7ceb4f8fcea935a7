#include "analyzer/trace/load_statistics.h"

#include <fmt/format.h>

#include <string_view>

#include "analyzer/trace/result.h"

namespace vramtrace::trace {
namespace {

struct Row {
  const char* name;
  Severity severity;
  const char* sentence;
};

constexpr Row kRows[] = {
#define VRAMTRACE_LOAD_STATISTIC(name, severity, sentence) {#name, Severity::severity, sentence},
#include "analyzer/trace/load_statistics.def"
#undef VRAMTRACE_LOAD_STATISTIC
};
static_assert(std::size(kRows) == kStatisticCount);

const Row& RowOf(Statistic statistic) { return kRows[static_cast<size_t>(statistic)]; }

}  // namespace

std::string Error::Sentence() const {
  if (offset) return fmt::format("{}, byte {}: {}", file, *offset, message);
  return fmt::format("{}: {}", file, message);
}

Severity SeverityOf(Statistic statistic) { return RowOf(statistic).severity; }
const char* NameOf(Statistic statistic) { return RowOf(statistic).name; }

void LoadStatistics::Add(Statistic statistic, uint64_t count, std::optional<uint64_t> offset) {
  Counter& counter = counters_[static_cast<size_t>(statistic)];
  if (counter.count == 0) counter.first_offset = offset;
  counter.count += count;
}

bool LoadStatistics::Damaged() const {
  for (size_t i = 0; i < kStatisticCount; ++i) {
    if (kRows[i].severity == Severity::kDamage && counters_[i].count > 0) return true;
  }
  return false;
}

std::string LoadStatistics::Sentence(Statistic statistic) const {
  const Counter& counter = Get(statistic);
  const std::string_view sentence = RowOf(statistic).sentence;
  std::string text = sentence.find("{}") == std::string_view::npos
                         ? std::string(sentence)
                         : fmt::format(fmt::runtime(sentence), counter.count);
  if (counter.first_offset) text += fmt::format(" First at byte {}.", *counter.first_offset);
  return text;
}

}  // namespace vramtrace::trace
