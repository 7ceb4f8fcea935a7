#include "analyzer/attribution/verdict.h"

#include <iterator>

namespace vramtrace::attribution {
namespace {

struct Row {
  std::string_view key;
  std::string_view words;
  std::string_view meaning;
};

constexpr Row kRows[] = {
#define VRAMTRACE_MEMORY_CLASS(name, key, words, meaning) {key, words, meaning},
#include "analyzer/attribution/memory_class.def"
#undef VRAMTRACE_MEMORY_CLASS
};
static_assert(std::size(kRows) == kMemoryClassCount);

const Row& RowOf(MemoryClass memory_class) { return kRows[static_cast<size_t>(memory_class)]; }

}  // namespace

std::string_view KeyOf(MemoryClass memory_class) { return RowOf(memory_class).key; }
std::string_view WordsOf(MemoryClass memory_class) { return RowOf(memory_class).words; }
std::string_view MeaningOf(MemoryClass memory_class) { return RowOf(memory_class).meaning; }

std::string_view NameOf(Confidence confidence) {
  switch (confidence) {
    case Confidence::kLow:
      return "low";
    case Confidence::kMedium:
      return "medium";
    case Confidence::kHigh:
      return "high";
  }
  return "?";
}

}  // namespace vramtrace::attribution
