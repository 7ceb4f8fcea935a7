// Functions whose signature differs between the CUDA 12 and 13 headers: 13 gave the unversioned names to what
// 12 calls _v2 and _v3, those with edge data. Both forms exist in 12.
#include "preload/simulator/cudart/graphs.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator::runtime;

extern "C" {

#if CUDART_VERSION >= 13000

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* /*edges*/, size_t count,
                             cudaGraphNodeParams* parameters) {
  return AddGraphNode(node, graph, dependencies, count, parameters);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData* edges, size_t* count) {
  return NodeNeighbours(node, dependencies, edges, count);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // none has data
  return CaptureState(stream, status, id, graph, dependencies, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* /*edges*/, size_t count,
                                                unsigned flags) {
  return UpdateCapture(stream, dependencies, count, flags);
}

#else

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             size_t count, cudaGraphNodeParams* parameters) {
  return AddGraphNode(node, graph, dependencies, count, parameters);
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                const cudaGraphEdgeData* /*edges*/, size_t count,
                                cudaGraphNodeParams* parameters) {
  return AddGraphNode(node, graph, dependencies, count, parameters);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  return NodeNeighbours(node, dependencies, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                            cudaGraphEdgeData* edges, size_t* count) {
  return NodeNeighbours(node, dependencies, edges, count);
}

// The headers rename it to cudaStreamGetCaptureInfo_v2.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, size_t* count) {
  return CaptureState(stream, status, id, graph, dependencies, count);
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                        size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return CaptureState(stream, status, id, graph, dependencies, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                size_t count, unsigned flags) {
  return UpdateCapture(stream, dependencies, count, flags);
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                   const cudaGraphEdgeData* /*edges*/, size_t count,
                                                   unsigned flags) {
  return UpdateCapture(stream, dependencies, count, flags);
}

#endif

}  // extern "C"
