#pragma once
// Counters of what a reader skipped or repaired. Shown to the user, never hidden.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace vramtrace::trace {

enum class Severity { kInformation, kLoss, kDamage };

enum class Statistic {
#define VRAMTRACE_LOAD_STATISTIC(name, severity, sentence) k##name,
#include "analyzer/trace/load_statistics.def"
#undef VRAMTRACE_LOAD_STATISTIC
  kCount
};

inline constexpr size_t kStatisticCount = static_cast<size_t>(Statistic::kCount);

[[nodiscard]] Severity SeverityOf(Statistic statistic);
[[nodiscard]] const char* NameOf(Statistic statistic);

class LoadStatistics {
 public:
  struct Counter {
    uint64_t count = 0;
    std::optional<uint64_t> first_offset;  // bytes from the file's start, where it happened first
  };

  // `offset` is kept for the first occurrence only.
  void Add(Statistic statistic, uint64_t count = 1, std::optional<uint64_t> offset = std::nullopt);

  [[nodiscard]] const Counter& Get(Statistic statistic) const {
    return counters_[static_cast<size_t>(statistic)];
  }
  [[nodiscard]] bool Damaged() const;

  // The counter's sentence with the count filled in, and where it happened first.
  [[nodiscard]] std::string Sentence(Statistic statistic) const;

 private:
  std::array<Counter, kStatisticCount> counters_{};
};

}  // namespace vramtrace::trace
