#pragma once
// A small training loop as the recorder would write it: a network of `layers` linear layers on the caching
// allocator, with its segments, module frames, autograd positions, labels and optimizer steps. Every size is
// known, so tests can say what a report must hold.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"

namespace vramtrace::testing {

struct TrainingOptions {
  int layers = 2;
  int steps = 2;
  uint64_t weight_bytes = 4 << 20;      // of each layer
  uint64_t activation_bytes = 8 << 20;  // saved by each layer
  uint64_t temporary_bytes = 2 << 20;   // in each layer's forward
  uint64_t input_bytes = 1 << 20;
  uint64_t total_bytes = uint64_t{24} << 30;
  uint64_t context_bytes = 300 << 20;
  // The forward of this layer in this step finds no memory; -1: it never happens.
  int fail_at_layer = -1;
  int fail_at_step = 0;
  bool labels = true;
  int64_t batch = 8;  // of the input's shape alone: sizes are given above
};

class TrainingRun {
 public:
  explicit TrainingRun(const TrainingOptions& options);
  // Plays the whole run into `builder`.
  void Play(TraceBuilder* builder);

 private:
  struct Place {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  struct Parameter {
    std::string name;
    Place weight;
    Place gradient;
    Place first_moment;
    Place second_moment;
  };

  void Prologue();
  void Load();
  void Step(int step);
  [[nodiscard]] bool Forward(int step);
  void Backward();
  void OptimizerStep(int step);
  void ZeroGradients();
  void Refuse(uint64_t bytes, uint32_t stack);

  [[nodiscard]] Place Allocate(uint64_t requested, uint32_t stack, const Autograd& autograd = {});
  void Free(Place* place, uint32_t stack, const Autograd& autograd = {});
  void Query(v1::MemoryQuery::Reason reason);
  [[nodiscard]] uint32_t ModuleStack(int layer, const char* function);

  TrainingOptions options_;
  TraceBuilder* builder_ = nullptr;
  std::map<uint64_t, uint64_t> free_;  // address to bytes: first fit, joined on free
  uint64_t next_segment_ = TraceBuilder::kBaseAddress;
  uint64_t allocated_ = 0;
  uint64_t reserved_ = 0;
  uint64_t autograd_number_ = 1;
  std::vector<uint64_t> node_of_layer_;
  std::vector<Parameter> parameters_;
  std::vector<Place> saved_;
  Place input_;
  Place output_;
};

}  // namespace vramtrace::testing
