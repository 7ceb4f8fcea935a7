#pragma once
// The stacks, frames and texts that the rows of a data file name, numbered anew so that only what is used is
// written.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/model/tables.h"
#include "analyzer/viewer_data/columns.h"

namespace vramtrace::viewer_data {

// Whether a Python function in `file` is one of those that torch and its users wrap around every call: true
// of any program, so it says nothing of this one. A wrapper in the program's own files is none.
[[nodiscard]] bool IsWrapper(std::string_view function, std::string_view file);

class UsedStacks {
 public:
  UsedStacks(const model::Tables& tables, Strings* strings) : tables_(tables), strings_(strings) {}

  // 0 is the empty stack. A stack's parent (the calling frames) always has a smaller number.
  [[nodiscard]] uint32_t Id(model::StackId stack);
  void Write(Columns* columns) const;

  struct Frame {
    uint32_t function = 0;  // texts
    uint32_t place = 0;     // "model.py:31"; 0: a native frame
    uint32_t file = 0;      // whole path
    uint8_t plumbing = 0;   // says nothing of the program: native, or what torch wraps around every call
  };
  [[nodiscard]] uint32_t ParentOf(uint32_t id) const { return stacks_[id].parent; }
  [[nodiscard]] const Frame& FrameOf(uint32_t id) const { return frames_[stacks_[id].frame]; }

 private:
  struct Stack {
    uint32_t parent = 0;
    uint32_t frame = 0;
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
