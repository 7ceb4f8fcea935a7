#pragma once
// A site's key: equal for the same place of one program in two recordings, where objects and ids differ.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "analyzer/attribution/breakdown.h"
#include "analyzer/model/stack_facts.h"
#include "analyzer/timeline/device_memory.h"

namespace vramtrace::forecast {

class SiteKeys {
 public:
  explicit SiteKeys(const model::Tables& tables) : tables_(tables) {}

  // Of the phase, every frame (file, line, function, module path), the running node's operator and the module
  // that the block was attributed to.
  [[nodiscard]] uint64_t Of(const timeline::Block& block, const attribution::Allocation& explained);

 private:
  [[nodiscard]] uint64_t OfStack(model::StackId stack, uint64_t sequence);
  // Native frames are no part of a key: they are walked for large blocks only, and what is large depends on
  // the batch.
  [[nodiscard]] bool IsNative(model::FrameId frame) const;
  [[nodiscard]] uint64_t OfFrame(model::FrameId frame, uint64_t sequence) const;

  const model::Tables& tables_;
  std::vector<uint64_t> stack_keys_;  // by stack id; 0: not worked out yet
};

}  // namespace vramtrace::forecast
