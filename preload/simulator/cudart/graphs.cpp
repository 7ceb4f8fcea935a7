#include "preload/simulator/cudart/graphs.h"

#include <cstring>
#include <memory>

#include "preload/simulator/cudart/runtime.h"
#include "preload/simulator/cudart/user_objects.h"

namespace vramtrace::simulator::runtime {
namespace {

// The graphs inside a conditional node: CUDA owns the array, and callers fill the graphs.
Status MakeConditionalGraphs(cudaConditionalNodeParams& parameters) {
  auto graphs = std::make_unique<cudaGraph_t[]>(parameters.size);
  for (unsigned i = 0; i < parameters.size; ++i) {
    Graph* graph = nullptr;
    if (Status status = CreateGraph(&graph); status != Status::kOk) return status;
    graphs[i] = reinterpret_cast<cudaGraph_t>(graph);
  }
  parameters.phGraph_out = graphs.release();  // lives as long as the node
  return Status::kOk;
}

cudaError_t Add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                cudaGraphNodeType type) {
  GraphNode* added = nullptr;
  Status status = AddNode(FindGraph(graph), type, Nodes(dependencies), count, &added);
  if (status == Status::kOk) *node = reinterpret_cast<cudaGraphNode_t>(added);
  return Result(status);
}

cudaError_t Make(cudaGraphExec_t* executable, cudaGraph_t graph) {
  GraphExecutable* made = nullptr;
  Status status = Instantiate(FindGraph(graph), &made);
  if (status != Status::kOk) return Result(status);
  ShareUserObjects(graph, made);
  *executable = reinterpret_cast<cudaGraphExec_t>(made);
  return cudaSuccess;
}

}  // namespace

cudaError_t AddGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         size_t count, cudaGraphNodeParams* parameters) {
  // Nodes that own memory would have to hand out addresses: cudaMallocAsync in a capture is the way.
  if (parameters->type == cudaGraphNodeTypeMemAlloc || parameters->type == cudaGraphNodeTypeMemFree) {
    return Result(Status::kNotSupported);
  }
  if (parameters->type == cudaGraphNodeTypeConditional) {
    if (Status status = MakeConditionalGraphs(parameters->conditional); status != Status::kOk) {
      return Result(status);
    }
  }
  return Add(node, graph, dependencies, count, parameters->type);
}

cudaError_t NodeNeighbours(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                           size_t* count) {
  Status status = NodeDependencies(Node(node), Nodes(dependencies), count);
  if (status == Status::kOk && dependencies != nullptr && edges != nullptr) {
    std::memset(edges, 0, *count * sizeof *edges);  // full dependencies, no ports
  }
  return Result(status);
}

cudaError_t CaptureState(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  const Capture* capture = stream->capture;
  *status = capture == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  if (id != nullptr) *id = capture == nullptr ? 0 : capture->id;
  if (graph != nullptr) {
    *graph = capture == nullptr ? nullptr : reinterpret_cast<cudaGraph_t>(capture->graph);
  }
  size_t frontier_count = 0;
  GraphNode* const* frontier = CaptureFrontier(stream, &frontier_count);
  if (dependencies != nullptr) *dependencies = reinterpret_cast<const cudaGraphNode_t*>(frontier);
  if (count != nullptr) *count = frontier_count;
  return cudaSuccess;
}

cudaError_t UpdateCapture(cudaStream_t handle, cudaGraphNode_t* dependencies, size_t count, unsigned flags) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  if (stream->capture == nullptr) return Fail(cudaErrorIllegalState);
  bool add = flags == cudaStreamAddCaptureDependencies;
  return Result(SetCaptureFrontier(stream, Nodes(dependencies), count, add));
}

}  // namespace vramtrace::simulator::runtime

using namespace vramtrace::simulator;
using runtime::Add;
using runtime::Make;
using runtime::Nodes;
using runtime::Result;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned /*flags*/) {
  return Result(CreateGraph(reinterpret_cast<Graph**>(graph)));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  runtime::ReleaseUserObjects(graph);
  return Result(DestroyGraph(FindGraph(graph)));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  return Add(node, graph, dependencies, count, cudaGraphNodeTypeEmpty);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* /*parameters*/) {
  return Add(node, graph, dependencies, count, cudaGraphNodeTypeKernel);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* /*parameters*/) {
  return Add(node, graph, dependencies, count, cudaGraphNodeTypeHost);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* /*parameters*/) {
  return Add(node, graph, dependencies, count, cudaGraphNodeTypeMemset);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* /*parameters*/) {
  return Add(node, graph, dependencies, count, cudaGraphNodeTypeMemcpy);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count, cudaGraph_t child) {
  if (FindGraph(child) == nullptr) return Result(Status::kInvalidHandle);
  return Add(node, graph, dependencies, count, cudaGraphNodeTypeGraph);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Result(GraphNodes(FindGraph(graph), false, Nodes(nodes), count));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Result(GraphNodes(FindGraph(graph), true, Nodes(nodes), count));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  int found = 0;
  Status status = NodeType(runtime::Node(node), &found);
  if (status == Status::kOk) *type = static_cast<cudaGraphNodeType>(found);
  return Result(status);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  return Make(executable, graph);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long /*flags*/) {
  return Make(executable, graph);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  cudaError_t error = Make(executable, graph);
  parameters->errNode_out = nullptr;
  parameters->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  return error;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return Result(LaunchGraph(FindExecutable(executable), FindStream(stream)));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t /*stream*/) {
  return FindExecutable(executable) == nullptr ? Result(Status::kInvalidHandle) : cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  runtime::ReleaseUserObjects(executable);
  return Result(DestroyExecutable(FindExecutable(executable)));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  *result = {};
  bool good = FindExecutable(executable) != nullptr && FindGraph(graph) != nullptr;
  result->result = good ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateError;
  return good ? cudaSuccess : Result(Status::kInvalidHandle);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned /*default_value*/, unsigned /*flags*/) {
  static unsigned long long next = 1;
  if (FindGraph(graph) == nullptr) return Result(Status::kInvalidHandle);
  *handle = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
  return cudaSuccess;
}

}  // extern "C"
