#pragma once
// Which forward event an autograd node comes from.
//
// Rule: at::sequence_number counts nodes; a forward event carries the number that the next node will get. A
// node is made before its kernel allocates, so the node with number s belongs to the first forward allocation
// that carries a greater number. On the prototype this named the module of 447 of 447 gradients in every mode
// (single and mixed precision, checkpointing, accumulation, LoRA).

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/model/tables.h"
#include "analyzer/trace/event.h"

namespace vramtrace::timeline {

class ForwardIndex {
 public:
  struct Entry {
    uint64_t sequence_number = 0;  // of autograd
    model::StackId stack{};
    uint64_t sequence = 0;  // of the event
  };

  // Every block allocation, in order.
  void Add(const trace::Event& event);
  // Forgets what is older than the step before the one that ended now: its graph is gone.
  void EndStep();
  // The forward event of the node, nullptr when none is known.
  [[nodiscard]] const Entry* Find(const trace::AutogradPosition& node) const;

 private:
  // Numbers count separately in every thread; entries ascend in both sequences.
  struct Thread {
    std::vector<Entry> entries;
    size_t previous_step = 0;  // entries before this one are older than the step under way
  };
  // Without optimizer steps nothing is forgotten until there are this many entries.
  static constexpr size_t kMostEntries = 1 << 21;

  [[nodiscard]] const Thread* ThreadOf(const trace::AutogradPosition& node) const;

  std::map<uint64_t, Thread> by_node_thread_;           // where the recorder writes a forward's own id
  std::map<model::ThreadId, Thread> by_packet_thread_;  // where it does not
  model::ThreadId first_forward_thread_{};
  uint64_t first_node_thread_ =
      0;  // of the first node that ran: a backward begins with a forward's own graph
};

}  // namespace vramtrace::timeline
