#pragma once
// The rules that decide a block's class, in order of strength. Each is one row of a table and one function.
// Their source is the agreement with a referee on real training runs (README.md has the figures).

#include <span>
#include <string_view>

#include "analyzer/attribution/block_facts.h"
#include "analyzer/attribution/verdict.h"

namespace vramtrace::attribution {

struct Rule {
  std::string_view name;
  // False: the rule has nothing to say about the block.
  bool (*decide)(const BlockFacts& facts, Verdict* verdict);
};

[[nodiscard]] std::span<const Rule> Rules();

// The first rule that decides.
[[nodiscard]] Verdict Classify(const BlockFacts& facts);

}  // namespace vramtrace::attribution
