#pragma once
// Walks a tape as PyTorch would run it, and finds the peak of the forward and of the backward.
//
// Forward: a tensor lives until the last operation that reads it, or until the backward of the last operation
// that kept it. Backward, last operation first: gradients of the inputs are made, then the gradient of the
// output and what was kept are let go; two gradients of one tensor are added in place unless someone else
// holds the first (torch/csrc/autograd/ input_buffer.cpp). A parameter's first gradient is kept as it comes,
// later ones are added to it.
//
// Memory is a maximum over instants, never a sum of savings: every technique changes the walk, and the
// maximum is taken again.

#include <array>
#include <cstdint>
#include <vector>

#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

// Bytes by class at one instant.
struct Memory {
  std::array<uint64_t, static_cast<size_t>(Class::kCount)> bytes{};

  uint64_t& operator[](Class kind) { return bytes[static_cast<size_t>(kind)]; }
  uint64_t operator[](Class kind) const { return bytes[static_cast<size_t>(kind)]; }
  [[nodiscard]] uint64_t Total() const;
};

struct WalkOptions {
  bool checkpointing = false;  // a layer's kept tensors are dropped and made again in its backward
  int layers_per_checkpoint = 1;
  bool checkpoints_on_host = false;
  bool step_in_backward = false;   // each gradient is used and freed as it comes
  double step_temporary = 0;       // and what that takes meanwhile, in bytes an element
  bool gradients_alive = false;    // from an earlier micro-batch, or because they are zeroed, not freed
  Dtype gradients = Dtype::kBf16;  // of parameters that are trained, adapters excepted

  // Of every parameter, what this device holds between uses: 1 / ways.
  uint64_t ways = 1;
  bool shards_parameters = false;        // FSDP, ZeRO-3: gathered layer by layer, the next one early
  bool shards_gradients = false;         // ZeRO-2 too
  bool gradients_on_host = false;        // each unit's, once it is done
  uint64_t micro_batches_in_flight = 1;  // of a pipeline stage
};

struct Walk {
  Memory forward;  // at the peak of the forward, gradients and all
  Memory forward_end;
  Memory backward;
  Memory gradients;  // after the backward: gradients alone
};

// What the tape needs beside weights, optimizer state and cache.
[[nodiscard]] Walk WalkTape(const Tape& tape, const WalkOptions& options);

}  // namespace vramtrace::estimate
