#pragma once
// Which values a program takes. Some take only multiples of a number, or none above or below some bound; that
// is learnt from what was accepted and what was rejected.

#include <cstdint>
#include <optional>
#include <set>

namespace vramtrace::fit {

class Values {
 public:
  // 1 <= from <= to.
  Values(uint64_t from, uint64_t to) : from_(from), to_(to) {}

  void Accept(uint64_t value);
  void Reject(uint64_t value);

  // The smallest divisor of every accepted value that divides no rejected one: the program takes its
  // multiples, as far as was seen. 1 where no such number explains the rejections.
  [[nodiscard]] uint64_t step() const { return step_; }
  // The greatest common divisor of the accepted ones; 1 without any. Multiples of it are the best guess after
  // a rejection.
  [[nodiscard]] uint64_t common() const;
  // Rejections above everything that was accepted follow no multiple: the program has a bound of its own.
  [[nodiscard]] bool bounded() const { return bounded_; }

  // The nearest value that may be tried; nothing outside of the bounds.
  [[nodiscard]] std::optional<uint64_t> AtOrBelow(uint64_t value) const;
  [[nodiscard]] std::optional<uint64_t> AtOrAbove(uint64_t value) const;

 private:
  void Learn();

  uint64_t from_;
  uint64_t to_;
  uint64_t step_ = 1;
  bool bounded_ = false;
  std::set<uint64_t> accepted_;
  std::set<uint64_t> rejected_;
  // Where no step explains the rejections: values rejected below and above everything that was accepted.
  uint64_t low_ = 1;
  uint64_t high_ = UINT64_MAX;
};

}  // namespace vramtrace::fit
