#pragma once
// A model and what one wants to do with it, to bytes: by class, at the peak, with a band and its reasons.
//
// The peak is the maximum over the phases of a step: forward, backward, optimizer (facts: ZeRO, arXiv
// 1910.02054, for what the states are; the tape and its walk for everything else). Bytes of states follow
// from shapes and are exact; the rest is as good as the tape, which dry runs check (tests/accuracy/estimate).

#include <string>
#include <vector>

#include "analyzer/estimate/families.h"
#include "analyzer/estimate/phases.h"
#include "analyzer/estimate/request.h"
#include "analyzer/gpus/cost.h"
#include "analyzer/trace/result.h"

namespace vramtrace::estimate {

struct Phase {
  std::string name;
  Memory memory;
};

struct Estimate {
  std::string model;
  std::string family;  // empty: not one that is known
  std::string file;
  Request request;
  uint64_t parameters = 0;
  uint64_t adapters = 0;  // parameters of the adapters
  uint64_t trainable = 0;
  std::vector<Phase> phases;  // of the fullest card
  size_t peak = 0;            // into phases
  uint64_t host_bytes = 0;
  double step_flops = 0;  // of one step of one card, forward and backward
  double tokens = 0;      // of that step

  gpus::Bytes allocated;  // what PyTorch's allocator hands out at the peak
  gpus::Bytes
      used;  // of the device, the context excepted: rounding, fragmentation, workspaces, communication
  std::vector<std::string> notes;  // assumptions, and why the band is as wide as it is

  [[nodiscard]] const Memory& AtPeak() const { return phases[peak].memory; }
};

[[nodiscard]] trace::Result<Estimate> MakeEstimate(const Model& model, const Request& request);

}  // namespace vramtrace::estimate
