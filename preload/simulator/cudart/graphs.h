#pragma once
// Graphs behind the runtime's handles. The functions whose signature changed from CUDA 12 to 13 (edge data)
// are in signatures.cpp and call these.

#include <cuda_runtime_api.h>

#include <cstddef>

#include "preload/simulator/core/graphs.h"

namespace vramtrace::simulator::runtime {

inline GraphNode* Node(cudaGraphNode_t node) { return reinterpret_cast<GraphNode*>(node); }
inline GraphNode** Nodes(cudaGraphNode_t* nodes) { return reinterpret_cast<GraphNode**>(nodes); }
inline GraphNode* const* Nodes(const cudaGraphNode_t* nodes) {
  return reinterpret_cast<GraphNode* const*>(nodes);
}

cudaError_t AddGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         size_t count, cudaGraphNodeParams* parameters);
cudaError_t NodeNeighbours(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                           size_t* count);
cudaError_t CaptureState(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count);
cudaError_t UpdateCapture(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned flags);

}  // namespace vramtrace::simulator::runtime
