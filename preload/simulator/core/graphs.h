#pragma once
// Graphs: what was captured or added, so that callers find the states and counts they expect. A launch does
// nothing. Node types are those of cudaGraphNodeType and CUgraphNodeType, which agree.

#include <cstddef>
#include <cstdint>

#include "preload/simulator/core/status.h"
#include "preload/simulator/core/streams.h"

namespace vramtrace::simulator {

struct GraphNode;

struct GraphExecutable {
  Graph* graph = nullptr;  // it was made from; may be gone
  uint64_t launches = 0;
};

VRAMTRACE_SIM_EXPORT Status CreateGraph(Graph** graph);
VRAMTRACE_SIM_EXPORT Status DestroyGraph(Graph* graph);
[[nodiscard]] VRAMTRACE_SIM_EXPORT Graph* FindGraph(void* handle);

// Adds a node after the given ones; they must be of the same graph.
VRAMTRACE_SIM_EXPORT Status AddNode(Graph* graph, int type, GraphNode* const* after, size_t after_count,
                                    GraphNode** node);
// Adds a node to the graph that a stream captures, after what the stream did last. Nothing when it captures
// nothing.
VRAMTRACE_SIM_EXPORT void CaptureWork(Stream* stream, int type);

// As the CUDA calls: with a null array, *count receives the number; otherwise at most *count are written.
VRAMTRACE_SIM_EXPORT Status GraphNodes(Graph* graph, bool roots_only, GraphNode** nodes, size_t* count);
VRAMTRACE_SIM_EXPORT Status NodeDependencies(GraphNode* node, GraphNode** nodes, size_t* count);
VRAMTRACE_SIM_EXPORT Status NodeType(GraphNode* node, int* type);
// The node a stream did last while capturing, null when there is none.
[[nodiscard]] VRAMTRACE_SIM_EXPORT GraphNode* const* CaptureFrontier(Stream* stream, size_t* count);
// Replaces or extends what the stream's next captured node depends on.
VRAMTRACE_SIM_EXPORT Status SetCaptureFrontier(Stream* stream, GraphNode* const* nodes, size_t count,
                                               bool add);

VRAMTRACE_SIM_EXPORT Status LaunchGraph(GraphExecutable* executable, Stream* stream);
VRAMTRACE_SIM_EXPORT Status Instantiate(Graph* graph, GraphExecutable** executable);
VRAMTRACE_SIM_EXPORT Status DestroyExecutable(GraphExecutable* executable);
[[nodiscard]] VRAMTRACE_SIM_EXPORT GraphExecutable* FindExecutable(void* handle);

}  // namespace vramtrace::simulator
