#pragma once
// The checks: facts in, a verdict a row out.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/doctor/facts.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::doctor {

enum class Status : uint8_t { kGood, kOff, kNotChecked };
[[nodiscard]] std::string_view StatusText(Status status);

struct Verdict {
  Status status = Status::kNotChecked;
  std::string found;  // what was seen; for kNotChecked why it was not checked
  std::string cause;  // kOff: the likely one
  std::string remedy;
};

enum class Scope : uint8_t { kCard, kMachine };

// `card` is null for the machine's checks.
struct Check {
  std::string_view key;
  std::string_view title;
  Scope scope;
  std::string_view what;
  Verdict (*judge)(const Facts& facts, const CardFacts* card) = nullptr;
};
[[nodiscard]] std::span<const Check> Checks();

struct Judged {
  const Check* check = nullptr;
  int card = -1;
  Verdict verdict;
};
// Every row, cards first.
[[nodiscard]] std::vector<Judged> JudgeAll(const Facts& facts);

#define VRAMTRACE_CHECK(key, title, scope, what, function) \
  Verdict function(const Facts& facts, const CardFacts* card);
#include "analyzer/doctor/checks.def"
#undef VRAMTRACE_CHECK

// Helpers.
[[nodiscard]] Verdict Good(std::string found);
[[nodiscard]] Verdict NotChecked(std::string why);
[[nodiscard]] Verdict Off(std::string found, std::string cause, std::string remedy);
// The catalogue's row that the card should be: of --sold-as, else by its name, and where names are shared the
// one whose memory is nearest. nullptr: not in the catalogue.
[[nodiscard]] const catalogue::Gpu* Expected(const CardFacts& card);
// Something that makes the card a part of one: "a MIG slice", "a limiter"; empty: nothing was seen.
[[nodiscard]] std::string Partition(const Facts& facts, const CardFacts& card);

}  // namespace vramtrace::doctor
