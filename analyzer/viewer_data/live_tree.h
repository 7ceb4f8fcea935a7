#pragma once
// What is alive at an instant as a call tree: the program's frames, and under each what it holds. For
// pictures that are drawn without a browser.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/viewer_data/build.h"

namespace vramtrace::viewer_data {

struct LiveNode {
  std::string label;
  std::string detail;  // file and line
  uint64_t bytes = 0;  // of tensors, with what is below
  size_t blocks = 0;
  Bands by_class{};
  std::vector<size_t> children;  // indexes, largest first
  [[nodiscard]] size_t MainClass() const;
};

// Node 0 is the root. Frames that say nothing of the program (native, torch's wrappers) are left out.
[[nodiscard]] std::vector<LiveNode> BuildLiveTree(const ViewerData& data, uint32_t device, Tick tick);

}  // namespace vramtrace::viewer_data
