#pragma once
// The stacks, frames and texts that the rows of a data file name, numbered anew so that only what is used is
// written.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/model/tables.h"
#include "analyzer/viewer_data/columns.h"

namespace vramtrace::viewer_data {

class UsedStacks {
 public:
  UsedStacks(const model::Tables& tables, Strings* strings) : tables_(tables), strings_(strings) {}

  // 0 is the empty stack. A stack's parent (the calling frames) always has a smaller number.
  [[nodiscard]] uint32_t Id(model::StackId stack);
  void Write(Columns* columns) const;

 private:
  struct Stack {
    uint32_t parent = 0;
    uint32_t frame = 0;
  };
  struct Frame {
    uint32_t function = 0;  // texts
    uint32_t place = 0;     // "model.py:31"
    uint32_t file = 0;      // whole path
  };
  [[nodiscard]] uint32_t FrameId(model::FrameId frame);

  const model::Tables& tables_;
  Strings* strings_;
  std::unordered_map<uint32_t, uint32_t> stack_ids_;
  std::unordered_map<uint32_t, uint32_t> frame_ids_;
  std::vector<Stack> stacks_{1};
  std::vector<Frame> frames_{1};
};

}  // namespace vramtrace::viewer_data
