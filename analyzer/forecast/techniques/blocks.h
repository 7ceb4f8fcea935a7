#pragma once
// The repeated blocks of a model, and where a run computed them.

#include <string>
#include <vector>

#include "analyzer/forecast/edit.h"
#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// Module paths of the outermost repeated blocks, in the model's order: siblings that differ in the number at
// the end of their name, have children of their own, and are no mere containers.
// preload/python/techniques/blocks.py follows the same rule.
[[nodiscard]] std::vector<std::string> RepeatedBlocks(const Stream& stream);

// One forward of one block, and its backward. Places are in Stream::events.
struct BlockWindow {
  uint32_t block = 0;  // place in RepeatedBlocks
  uint32_t step = 0;
  uint32_t begin = 0;       // its first allocation
  uint32_t end = 0;         // the last event before the next allocation outside of it
  uint64_t first_node = 0;  // autograd numbers of its nodes, those that ask for nothing in forward included
  uint64_t last_node = 0;
  RequestId output = RequestId::kNone;  // the request that the next block reads
  // The block's last operator saves its result (ReLU): recomputing runs to the very end.
  bool saves_output = false;
  uint32_t backward_begin = Span::kOpen;  // the first allocation of one of its nodes in backward; kOpen: none
  uint32_t backward_end = Span::kOpen;    // the last event before the next allocation of another's node
  std::vector<RequestId> requests;
};

// In the order of the run. Forwards without gradients are left out.
[[nodiscard]] std::vector<BlockWindow> FindWindows(const Stream& stream,
                                                   const std::vector<std::string>& blocks);

// The running node of backward is the one that forward requests with this number were made for: a node takes
// its number before its operator asks for memory.
[[nodiscard]] constexpr uint64_t NodeOf(uint64_t forward_number) {
  return forward_number == 0 ? 0 : forward_number - 1;
}

}  // namespace vramtrace::forecast
