#pragma once
// What a search found.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/fit/forecaster.h"
#include "analyzer/fit/runner.h"

namespace vramtrace::fit {

// One dry run of the search.
struct Trial {
  uint64_t value = 0;
  std::string gpu;         // id
  bool unlimited = false;  // on a card that refuses nothing
  RunResult run;
};

// Why there is no answer.
struct Problem {
  enum class Kind : uint8_t {
    kProgramFailed,  // with every value that was tried
    kNoGpu,          // it did not use the device
    kNotFollowed,    // the value changes nothing
    kTimedOut,
    kStopped,
    kInterrupted,
    kNotStarted,
  };
  Kind kind = Kind::kProgramFailed;
  std::string words;
  std::vector<std::string> last_lines;
  int exit_code = 0;  // of the program
};

// A value with what the forecast says of it and what its dry run on the card did.
struct Measured {
  uint64_t value = 0;
  RunResult run;
  std::optional<Forecast> forecast;
};

struct CardAnswer {
  enum class Kind : uint8_t {
    kProved,          // `largest` fits in a dry run and `above` does not
    kEverythingFits,  // `largest` fits, and no larger value is allowed or accepted
    kNothingFits,     // not even `above`, the smallest value
    kNotProved,       // what `notes` say; `largest` is the largest that did fit in a dry run, if any
  };
  Target target;
  Kind kind = Kind::kNotProved;
  std::optional<Measured> largest;
  std::optional<Measured> above;
  std::optional<uint64_t> forecast_largest;  // before any run on this card
  // The largest value whose band fits: what is safe to take to a real card.
  std::optional<uint64_t> safe;
  bool contradicted = false;  // a run ended otherwise than forecast
  bool monotone = true;       // false: some value above one that does not fit does
  std::vector<std::string> notes;
};

struct FitReport {
  std::vector<std::string> command;
  std::string placeholder;
  std::vector<CardAnswer> cards;
  std::vector<std::string> basis;  // of the forecasts, one an architecture
  uint64_t step = 1;               // values are multiples of this
  bool deterministic = true;
  std::vector<std::string> notes;
  std::vector<Trial> trials;
  std::optional<Problem> problem;
};

}  // namespace vramtrace::fit
