#include "preload/simulator/core/graphs.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "preload/simulator/core/report.h"

namespace vramtrace::simulator {

struct GraphNode {
  int type = 0;
  Graph* graph = nullptr;
  std::vector<GraphNode*> after;
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

namespace {

struct Tables {
  std::mutex mutex;
  std::unordered_set<void*> graphs;
  std::unordered_set<void*> nodes;
  std::unordered_set<void*> executables;
};

Tables& TheTables() {
  static auto* tables = new Tables;
  return *tables;
}

GraphNode* Add(Tables& tables, Graph* graph, int type, std::vector<GraphNode*> after) {
  graph->nodes.push_back(std::make_unique<GraphNode>(GraphNode{type, graph, std::move(after)}));
  GraphNode* node = graph->nodes.back().get();
  tables.nodes.insert(node);
  return node;
}

void Write(const std::vector<GraphNode*>& found, GraphNode** nodes, size_t* count) {
  if (nodes == nullptr) {
    *count = found.size();
    return;
  }
  size_t written = std::min(*count, found.size());
  std::copy_n(found.begin(), written, nodes);
  std::fill(nodes + written, nodes + *count, nullptr);
  *count = written;
}

}  // namespace

Status CreateGraph(Graph** graph) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  *graph = new Graph;
  tables.graphs.insert(*graph);
  return Status::kOk;
}

Status DestroyGraph(Graph* graph) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.graphs.erase(graph) == 0) return Status::kInvalidHandle;
  for (const auto& node : graph->nodes) tables.nodes.erase(node.get());
  delete graph;
  return Status::kOk;
}

Graph* FindGraph(void* handle) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  return tables.graphs.count(handle) != 0 ? static_cast<Graph*>(handle) : nullptr;
}

Status AddNode(Graph* graph, int type, GraphNode* const* after, size_t after_count, GraphNode** node) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.graphs.count(graph) == 0) return Status::kInvalidHandle;
  std::vector<GraphNode*> dependencies;
  for (size_t i = 0; i < after_count; ++i) {
    if (tables.nodes.count(after[i]) == 0 || after[i]->graph != graph) return Status::kInvalidValue;
    dependencies.push_back(after[i]);
  }
  *node = Add(tables, graph, type, std::move(dependencies));
  return Status::kOk;
}

void CaptureWork(Stream* stream, int type) {
  if (stream == nullptr || stream->capture == nullptr) return;
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  Capture* capture = stream->capture;
  if (capture == nullptr || tables.graphs.count(capture->graph) == 0) return;
  capture->frontier = {Add(tables, capture->graph, type, capture->frontier)};
}

Status GraphNodes(Graph* graph, bool roots_only, GraphNode** nodes, size_t* count) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.graphs.count(graph) == 0) return Status::kInvalidHandle;
  std::vector<GraphNode*> found;
  for (const auto& node : graph->nodes) {
    if (!roots_only || node->after.empty()) found.push_back(node.get());
  }
  Write(found, nodes, count);
  return Status::kOk;
}

Status NodeDependencies(GraphNode* node, GraphNode** nodes, size_t* count) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.nodes.count(node) == 0) return Status::kInvalidHandle;
  Write(node->after, nodes, count);
  return Status::kOk;
}

Status NodeType(GraphNode* node, int* type) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.nodes.count(node) == 0) return Status::kInvalidHandle;
  *type = node->type;
  return Status::kOk;
}

GraphNode* const* CaptureFrontier(Stream* stream, size_t* count) {
  *count = 0;
  if (stream == nullptr || stream->capture == nullptr) return nullptr;
  *count = stream->capture->frontier.size();
  return stream->capture->frontier.data();
}

Status SetCaptureFrontier(Stream* stream, GraphNode* const* nodes, size_t count, bool add) {
  if (stream == nullptr || stream->capture == nullptr) return Status::kInvalidValue;
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  for (size_t i = 0; i < count; ++i) {
    if (tables.nodes.count(nodes[i]) == 0) return Status::kInvalidHandle;
  }
  std::vector<GraphNode*>& frontier = stream->capture->frontier;
  if (!add) frontier.clear();
  frontier.insert(frontier.end(), nodes, nodes + count);
  return Status::kOk;
}

Status Instantiate(Graph* graph, GraphExecutable** executable) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.graphs.count(graph) == 0) return Status::kInvalidHandle;
  *executable = new GraphExecutable{graph};
  tables.executables.insert(*executable);
  return Status::kOk;
}

Status LaunchGraph(GraphExecutable* executable, Stream* stream) {
  if (executable == nullptr || stream == nullptr) return Status::kInvalidHandle;
  ++executable->launches;
  report::Add(report::Count::kGraphLaunches);
  return Status::kOk;
}

Status DestroyExecutable(GraphExecutable* executable) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  if (tables.executables.erase(executable) == 0) return Status::kInvalidHandle;
  delete executable;
  return Status::kOk;
}

GraphExecutable* FindExecutable(void* handle) {
  Tables& tables = TheTables();
  std::lock_guard lock(tables.mutex);
  return tables.executables.count(handle) != 0 ? static_cast<GraphExecutable*>(handle) : nullptr;
}

}  // namespace vramtrace::simulator
