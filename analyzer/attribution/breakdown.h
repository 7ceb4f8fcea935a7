#pragma once
// A snapshot explained: every live block with its class, and the accounting identity.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/attribution/block_facts.h"
#include "analyzer/attribution/verdict.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"

namespace vramtrace::attribution {

struct Allocation {
  size_t block = 0;  // index into Snapshot::blocks
  Verdict verdict;
  // Qualified names of the parameter or buffer that the label names; tied tensors have several. Empty: none.
  std::vector<std::string> names;
  std::string state_key;  // of optimizer state: exp_avg
  std::string copy_of;    // the parameter that autocast made this half-width copy of
  std::string dtype;
  std::vector<int64_t> shape;
  std::string module_path;
  std::string module_class;
  bool has_module = false;
  std::string operator_name;  // of the running autograd node, demangled
};

struct ClassTotal {
  uint64_t tensor_bytes = 0;
  uint64_t block_bytes = 0;  // with the allocator's rounding
  uint64_t blocks = 0;
  uint64_t unsure_bytes = 0;  // tensor bytes of verdicts below high confidence
};

// One line of the identity. Terms add up to `Identity::device_used`.
struct Term {
  std::string key;
  std::string words;
  int64_t bytes = 0;
  std::string basis;   // one word: recorded, counter (PyTorch's own), modelled, remainder
  std::string detail;  // where the number comes from
};

// device used = sum over classes + rounding + cached free + other allocations + context and code + the rest.
struct Identity {
  uint64_t device_used = 0;
  bool device_used_known = false;
  std::string device_used_basis;
  std::vector<Term> terms;
  int64_t sum = 0;  // of the terms
  // device_used - sum: zero, or the trace contradicts itself.
  [[nodiscard]] int64_t Mismatch() const { return static_cast<int64_t>(device_used) - sum; }
};

// Free ranges inside the caching allocator's memory. Blocks that wait for an event of another stream look
// free here.
struct FreeSpace {
  struct Pool {
    uint64_t bytes = 0;
    uint64_t holes = 0;
    uint64_t largest = 0;
    uint64_t whole_segments = 0;  // bytes of segments without a live block: they can go back to the driver
  };
  Pool small;  // segments for blocks up to 1 MiB
  Pool large;
};

struct Breakdown {
  std::vector<Allocation> allocations;  // by descending tensor bytes
  std::array<ClassTotal, kMemoryClassCount> classes{};
  uint64_t rounding = 0;
  Identity identity;
  FreeSpace free_space;
};

[[nodiscard]] Breakdown Explain(const model::Tables& tables, const model::StackTable& stacks,
                                const timeline::Scan& scan, const timeline::Snapshot& snapshot,
                                bool at_out_of_memory);

// One block of `around.snapshot`; `labels` are its own.
[[nodiscard]] Allocation ExplainBlock(const Surroundings& around, size_t index, const BlockLabels& labels);

// The module of an event by its frames, or for a running node by the forward that made it.
struct ModuleRef {
  bool known = false;
  bool from_autograd = false;
  std::string path;  // empty: the root module
  std::string class_name;
};
[[nodiscard]] ModuleRef ModuleOf(const model::Tables& tables, const model::StackFacts& stack,
                                 uint64_t sequence);

}  // namespace vramtrace::attribution
