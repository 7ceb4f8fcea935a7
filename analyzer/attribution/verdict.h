#pragma once
// What a block was found to be, and why.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrace::attribution {

enum class MemoryClass : uint8_t {
#define VRAMTRACE_MEMORY_CLASS(name, key, words, meaning) k##name,
#include "analyzer/attribution/memory_class.def"
#undef VRAMTRACE_MEMORY_CLASS
  kCount
};
inline constexpr size_t kMemoryClassCount = static_cast<size_t>(MemoryClass::kCount);

[[nodiscard]] std::string_view KeyOf(MemoryClass memory_class);
[[nodiscard]] std::string_view WordsOf(MemoryClass memory_class);
[[nodiscard]] std::string_view MeaningOf(MemoryClass memory_class);

enum class Confidence : uint8_t {
  kLow,     // a guess from the place alone
  kMedium,  // a rule that can be wrong in known cases
  kHigh,    // labelled by the program's own objects, or decided by a complete life
};
[[nodiscard]] std::string_view NameOf(Confidence confidence);

struct Verdict {
  MemoryClass memory_class = MemoryClass::kUnknown;
  Confidence confidence = Confidence::kLow;
  std::string_view rule = "none";  // the rule's row in rules.cpp
  std::string evidence;            // one clause, lower case, no full stop
};

}  // namespace vramtrace::attribution
