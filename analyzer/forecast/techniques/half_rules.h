#pragma once
// What both ways to compute in half precision share.

#include "analyzer/forecast/techniques/passes.h"

namespace vramtrace::forecast {

// Parts of a sum over many rows, staged in single precision whatever the type: followed by a few counters,
// both gone at once (aten/src/ATen/native/cuda/Reduce.cuh).
[[nodiscard]] bool IsStaging(const Graph& graph, RequestId id);

// The loss in single precision: logits are cast up before `node`, a log-softmax, and their gradient down
// after it. `held`: transformers keeps the cast logits until its model returns; the loss of autocast does
// not.
void CastLogits(const Graph& graph, uint64_t number, const GraphNode& node, bool held, Edit* edit);

[[nodiscard]] bool IsSingle(const Parameter& parameter);

}  // namespace vramtrace::forecast
