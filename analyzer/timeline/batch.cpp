#include "analyzer/timeline/batch.h"

#include <algorithm>
#include <map>

namespace vramtrace::timeline {

uint64_t BatchOf(const Scan& scan) {
  std::map<int64_t, int> first_dimensions;
  for (const InputRow& row : scan.inputs) {
    if (row.step == scan.inputs.back().step && !row.shape.empty()) ++first_dimensions[row.shape.front()];
  }
  const auto most = std::max_element(first_dimensions.begin(), first_dimensions.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == first_dimensions.end() || most->first <= 0 ? 0 : static_cast<uint64_t>(most->first);
}

}  // namespace vramtrace::timeline
