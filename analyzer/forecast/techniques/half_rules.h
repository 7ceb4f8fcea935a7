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

// On cards whose attention in half precision is cuDNN's (compute capability 9 and 10, since PyTorch 2.5): its
// result is laid out as the query is, so that the copy that the memory-efficient kernel of single precision
// needs before the next product is not made. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp,
// check_prefer_cudnn_attention.
void RemoveLayoutCopies(const Graph& graph, Edit* edit);

[[nodiscard]] bool IsSingle(const Parameter& parameter);

}  // namespace vramtrace::forecast
