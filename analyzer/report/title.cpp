#include "analyzer/report/title.h"

#include <fmt/format.h>

namespace vramtrace::report {

std::string TitleOf(const attribution::Allocation& allocation) {
  using attribution::MemoryClass;
  if (!allocation.copy_of.empty()) return fmt::format("half-width copy of {}", allocation.copy_of);
  if (allocation.names.empty()) return allocation.module_path;
  const std::string& name = allocation.names.front();
  switch (allocation.verdict.memory_class) {
    case MemoryClass::kGradient:
      return fmt::format("gradient of {}", name);
    case MemoryClass::kOptimizerState:
      return fmt::format("{} of {}", allocation.state_key, name);
    default:
      return name;
  }
}

}  // namespace vramtrace::report
