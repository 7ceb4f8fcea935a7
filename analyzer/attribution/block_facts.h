#pragma once
// Everything that a rule may look at to decide what a block is.

#include <string>
#include <vector>

#include "analyzer/attribution/labels.h"
#include "analyzer/model/stack_facts.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"

namespace vramtrace::attribution {

// Facts of the trace and the device, the same for every block.
struct Surroundings {
  const model::Tables* tables = nullptr;
  const model::StackTable* stacks = nullptr;
  const timeline::Scan* scan = nullptr;
  const timeline::Snapshot* snapshot = nullptr;
  const ParameterSizes* parameters = nullptr;
  bool at_out_of_memory = false;  // the instant is a refusal that ended the run
  uint64_t workspace_bytes = 0;   // of cuBLAS on this device
};

struct BlockFacts {
  const Surroundings* around = nullptr;
  const timeline::LiveBlock* live = nullptr;
  const BlockLabels* labels = nullptr;
  const model::StackFacts* stack = nullptr;
  const model::StackFacts* free_stack = nullptr;
  timeline::SiteLives site;  // of the call site; of the same line in other layers where this one has none yet
  std::string module_path;   // empty: none known, or the root
  bool has_module = false;
  bool module_from_autograd = false;  // by the node's sequence number rather than by frames

  [[nodiscard]] const timeline::Block& block() const { return live->block; }
  // Freed by the program's own code, on its own thread, outside of backward(): a variable held it.
  [[nodiscard]] bool ReleasedByScript() const;
  // Allocated and freed with hardly an event in between.
  [[nodiscard]] bool FreedAtOnce() const {
    return live->freed && live->free_sequence - block().sequence <= 2;
  }
};

// What cuBLAS takes for one handle: CUBLAS_WORKSPACE_CONFIG where it is set, else by compute capability
// (sources: PyTorch's default since 2.0 for 9.0, since 2.11/2.12 for 10.x and 12.x).
[[nodiscard]] uint64_t CublasWorkspaceBytes(const v1::Process& process, const v1::Device* device);

}  // namespace vramtrace::attribution
