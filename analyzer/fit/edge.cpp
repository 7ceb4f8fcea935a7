#include "analyzer/fit/edge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace vramtrace::fit {
namespace {

// Allocated bytes of a proof may differ from the forecast by this share before the runs are suspected.
constexpr double kSuspicious = 0.005;
// How many values above the edge are asked of the forecast, to find one that fits again.
constexpr int kLookAbove = 8;

class EdgeSearch {
 public:
  EdgeSearch(Laboratory* laboratory, const Target& target, const Target& recorded_on, Learnt* learnt,
             CardAnswer* answer)
      : laboratory_(*laboratory),
        target_(target),
        recorded_on_(recorded_on),
        learnt_(*learnt),
        forecaster_(*learnt->forecaster),
        answer_(*answer) {
    answer_.target = target;
  }

  bool Run() {
    answer_.forecast_largest = ForecastLargest();
    std::optional<uint64_t> next = answer_.forecast_largest ? answer_.forecast_largest : Smallest();
    while (next && runs_ < laboratory_.options().most_runs) {
      if (!Try(*next)) return !laboratory_.report().problem.has_value() && Conclude();
      next = Next();
    }
    if (next) {
      answer_.notes.push_back(
          fmt::format("given up after {} runs on this card: the edge is not where a forecast or halving "
                      "finds it",
                      runs_));
    }
    return Conclude();
  }

 private:
  Values& values() { return laboratory_.values(); }
  std::optional<uint64_t> Smallest() { return values().AtOrAbove(laboratory_.options().from); }

  // The largest value that goes through in a replay on this card.
  std::optional<uint64_t> ForecastLargest() {
    const std::optional<uint64_t> smallest = Smallest();
    if (!smallest || !forecaster_.Fits(*smallest, target_)) return std::nullopt;
    uint64_t fits = *smallest;
    uint64_t beyond = fits;
    while (true) {
      const auto next = values().AtOrAbove(beyond * 2);
      if (!next) break;
      beyond = *next;
      if (!forecaster_.Fits(beyond, target_)) break;
      fits = beyond;
    }
    if (beyond == fits) beyond = laboratory_.options().to + 1;
    while (true) {
      const auto middle = values().AtOrBelow(fits + (beyond - fits) / 2);
      if (!middle || *middle <= fits) break;
      (forecaster_.Fits(*middle, target_) ? fits : beyond) = *middle;
    }
    // The last one below `beyond`, where steps are coarse.
    const auto last = values().AtOrBelow(beyond - 1);
    if (last && *last > fits && forecaster_.Fits(*last, target_)) fits = *last;
    return fits;
  }

  // False where the search on this card ends.
  bool Try(uint64_t value) {
    const std::string_view why = runs_ == 0                 ? "which should fit"
                                 : lowest_refused_ && fits_ ? "between one that fits and one that does not"
                                                            : "to find the edge";
    RunResult run = laboratory_.Run(value, target_, false,
                                    runs_ == 0 && !answer_.forecast_largest ? "the smallest one"
                                    : runs_ == 1                            ? "to prove the edge"
                                                                            : why);
    ++runs_;
    if (auto problem = Laboratory::ProblemOf(run, laboratory_.Name(value))) {
      if (problem->kind != Problem::Kind::kInterrupted) {
        answer_.notes.push_back("not proved: " + problem->words);
        return false;
      }
      laboratory_.report().problem = std::move(problem);
      return false;
    }
    if (run.end == End::kFailed) return true;  // rejected: Next() takes another
    const bool fits = run.end == End::kCompleted;
    const bool expected = forecaster_.Fits(value, target_);
    const bool far_off = fits && IsFarOff(value, run);
    if (fits) fits_ = std::max(fits_.value_or(0), value);
    if (!fits) lowest_refused_ = std::min(lowest_refused_.value_or(UINT64_MAX), value);
    tried_[value] = std::move(run);
    if (fits != expected) {
      answer_.contradicted = true;
      answer_.notes.push_back(fmt::format("{} was forecast to {}fit and {}", laboratory_.Name(value),
                                          expected ? "" : "not ", fits ? "did" : "did not"));
    }
    if (fits != expected || far_off) CheckThatRunsRepeat(&laboratory_, recorded_on_, learnt_.smaller);
    return true;
  }

  bool IsFarOff(uint64_t value, const RunResult& run) {
    if (run.peak_allocated == 0) return false;
    const auto forecast = static_cast<double>(forecaster_.At(value, target_).allocated);
    if (forecast == 0) return false;
    const double share = static_cast<double>(run.peak_allocated) / forecast - 1;
    if (std::abs(share) <= kSuspicious) return false;
    answer_.notes.push_back(fmt::format("{} took {:+.1f} % of what was forecast to be allocated",
                                        laboratory_.Name(value), 100 * share));
    return true;
  }

  // The next value to run; nothing when the edge is proved, or there is no other.
  std::optional<uint64_t> Next() {
    if (fits_ && lowest_refused_) return Between(*fits_, *lowest_refused_);
    if (fits_ && values().bounded()) return HalfWayToTheBound(*fits_);
    // Away from what is known, in strides that double: a forecast that is off is off by little.
    if (fits_) {
      const auto next = values().AtOrAbove(*fits_ + stride_ * values().step());
      stride_ *= 2;
      return next ? next : Last(*fits_);
    }
    if (lowest_refused_) {
      const uint64_t less = stride_ * values().step();
      stride_ *= 2;
      const auto next = *lowest_refused_ > less ? values().AtOrBelow(*lowest_refused_ - less) : std::nullopt;
      if (next) return next;
      const auto smallest = Smallest();
      return smallest && *smallest < *lowest_refused_ ? smallest : std::nullopt;
    }
    // Nothing but rejected values so far: is it a multiple that the program wants, or a bound?
    if (values().bounded()) return HalfWayToTheBound(learnt_.larger.value);
    const uint64_t around = answer_.forecast_largest.value_or(laboratory_.options().from);
    const uint64_t common = values().common();
    const auto below = values().AtOrBelow(around / common * common);
    return below ? below : values().AtOrAbove(around);
  }

  // Between a value that the program takes and the largest one that it may take.
  std::optional<uint64_t> HalfWayToTheBound(uint64_t accepted) {
    const auto most = values().AtOrBelow(laboratory_.options().to);
    if (!most || *most <= accepted) return std::nullopt;
    return values().AtOrBelow(accepted + (*most - accepted + 1) / 2);
  }

  // A stride went beyond the bounds: the largest value within.
  std::optional<uint64_t> Last(uint64_t above) {
    const auto last = values().AtOrBelow(laboratory_.options().to);
    return last && *last > above ? last : std::nullopt;
  }

  std::optional<uint64_t> Between(uint64_t low, uint64_t high) {
    const auto adjacent = values().AtOrAbove(low + 1);
    if (!adjacent || *adjacent >= high) return std::nullopt;
    const auto middle = values().AtOrBelow(low + (high - low) / 2);
    return middle && *middle > low ? middle : adjacent;
  }

  Measured MeasuredAt(uint64_t value) {
    return {.value = value, .run = tried_.at(value), .forecast = forecaster_.At(value, target_)};
  }

  bool Conclude() {
    if (laboratory_.report().problem) return false;
    if (fits_) answer_.largest = MeasuredAt(*fits_);
    if (lowest_refused_) answer_.above = MeasuredAt(*lowest_refused_);
    using Kind = CardAnswer::Kind;
    answer_.kind = Kind::kNotProved;
    if (fits_ && lowest_refused_ && !Between(*fits_, *lowest_refused_)) answer_.kind = Kind::kProved;
    if (!fits_ && lowest_refused_ && Smallest() == lowest_refused_) answer_.kind = Kind::kNothingFits;
    if (fits_ && !lowest_refused_ && !Last(*fits_)) answer_.kind = Kind::kEverythingFits;
    if (answer_.kind == Kind::kProved && !LookForAnotherThatFits()) return false;
    answer_.safe = Safe();
    return true;
  }

  // False when the search must end.
  bool LookForAnotherThatFits() {
    uint64_t value = *lowest_refused_;
    for (int i = 0; i < kLookAbove; ++i) {
      const auto next = values().AtOrAbove(value + 1);
      if (!next) return true;
      value = *next;
      if (!forecaster_.Fits(value, target_)) continue;
      const RunResult run = laboratory_.Run(value, target_, false, "which is forecast to fit again");
      ++runs_;
      if (run.end == End::kInterrupted) {
        laboratory_.report().problem = Laboratory::ProblemOf(run, "");
        return false;
      }
      if (run.end != End::kCompleted) return true;
      answer_.monotone = false;
      answer_.notes.push_back(fmt::format(
          "the edge is not monotone: {} does not fit and {} does; {} is the largest below the first that "
          "does not",
          *lowest_refused_, value, *fits_));
      return true;
    }
    return true;
  }

  // The largest value, not above what fitted, whose band fits.
  std::optional<uint64_t> Safe() {
    const std::optional<uint64_t> top = fits_ ? fits_ : answer_.forecast_largest;
    const auto smallest = Smallest();
    if (!top || !smallest) return std::nullopt;
    const auto safe = [&](uint64_t value) {
      return forecaster_.At(value, target_).judgement.verdict == forecast::Verdict::kFits;
    };
    if (safe(*top)) return top;
    if (!safe(*smallest)) return std::nullopt;
    uint64_t low = *smallest;
    uint64_t high = *top;
    while (true) {
      const auto middle = values().AtOrBelow(low + (high - low) / 2);
      if (!middle || *middle <= low) break;
      (safe(*middle) ? low : high) = *middle;
    }
    return low;
  }

  Laboratory& laboratory_;
  const Target& target_;
  const Target& recorded_on_;
  Learnt& learnt_;
  Forecaster& forecaster_;
  CardAnswer& answer_;
  std::optional<uint64_t> fits_;  // largest below every one that was refused
  std::optional<uint64_t> lowest_refused_;
  std::map<uint64_t, RunResult> tried_;
  uint64_t stride_ = 1;
  int runs_ = 0;
};

}  // namespace

bool FindEdge(Laboratory* laboratory, const Target& target, const Target& recorded_on, Learnt* learnt,
              CardAnswer* answer) {
  return EdgeSearch(laboratory, target, recorded_on, learnt, answer).Run();
}

}  // namespace vramtrace::fit
