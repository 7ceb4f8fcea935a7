#pragma once
// What blocks have in common. A training step allocates the same few thousand blocks again and again, so all
// that does not differ between them is a row here, once, and a block is four numbers.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/attribution/lives.h"
#include "analyzer/viewer_data/tables.h"

namespace vramtrace::viewer_data {

using KindId = uint32_t;

struct Kind {
  // Texts and stacks by their number in the data file.
  uint32_t stack = 0, forward_stack = 0;
  uint32_t title = 0, names = 0, module = 0, module_class = 0, evidence = 0, rule = 0;
  uint32_t operator_name = 0, dtype = 0, shape = 0;
  uint8_t device = 0, memory_class = 0, confidence = 0, phase = 0;
  uint64_t bytes = 0;        // of the tensor
  uint64_t block_bytes = 0;  // with the allocator's rounding
  friend bool operator==(const Kind&, const Kind&) = default;
};

class Kinds {
 public:
  Kinds(UsedStacks* stacks, Strings* strings) : stacks_(stacks), strings_(strings) {}
  [[nodiscard]] KindId Id(const attribution::Life& life);
  [[nodiscard]] const Kind& operator[](KindId id) const { return kinds_[id]; }
  [[nodiscard]] size_t size() const { return kinds_.size(); }
  // Columns "kind.*".
  void Write(Columns* columns) const;

 private:
  struct Hash {
    size_t operator()(const Kind& kind) const;
  };
  // All that decides a life's kind, as the analyzer has it. To compare it with that of an earlier block costs
  // a tenth of finding texts and stacks by name, and a step's blocks are those of the step before.
  struct Source {
    attribution::Allocation explained;
    model::StackId stack{}, forward_stack{};
    uint32_t device = 0;
    model::Phase phase{};
    uint64_t bytes = 0, block_bytes = 0;
    KindId id = 0;
    bool filled = false;
    [[nodiscard]] bool IsOf(const attribution::Life& life) const;
  };
  static constexpr size_t kSources = size_t{1}
                                     << 14;  // 6 MB; a step of a large model has some thousand kinds
  [[nodiscard]] static size_t PlaceOf(const attribution::Life& life);
  [[nodiscard]] Kind Describe(const attribution::Life& life);

  UsedStacks* stacks_;
  Strings* strings_;
  std::vector<Kind> kinds_;
  std::unordered_map<Kind, KindId, Hash> ids_;
  std::vector<Source> sources_;  // by PlaceOf; the last one there wins
};

}  // namespace vramtrace::viewer_data
