#pragma once
// How the size of each request depends on the batch.

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// One recording. Fixed: what is labelled (weights, gradients, optimizer state, buffers), what the optimizer
// asks for in its step, what has the size of a parameter of its own module (times 1/2, 1 or 2: gradients
// before they are named, casts), workspaces, and what is too small for a whole element a sample. The rest is
// proportional where it divides by the batch. Agreement of these rules with runs at other batches: README.md.
void SetLawsByRule(Stream* stream);

// Two recordings of one program with different batches. Requests are matched by site, step and ordinal; a
// law goes through both sizes. Requests without a partner, or whose law would fall with the batch, keep the
// rule of one recording.
struct Alignment {
  uint64_t matched = 0;  // requests
  uint64_t unmatched = 0;
  Bytes matched_bytes = 0;
  Bytes unmatched_bytes = 0;
  [[nodiscard]] double share() const {
    const Bytes all = matched_bytes + unmatched_bytes;
    return all == 0 ? 0 : static_cast<double>(matched_bytes) / static_cast<double>(all);
  }
};
// Sets the laws of `stream`. Its batch and that of `other` must be known and differ.
Alignment SetLawsByTwo(Stream* stream, const Stream& other);

}  // namespace vramtrace::forecast
