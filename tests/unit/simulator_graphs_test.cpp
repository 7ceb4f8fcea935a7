#include <gtest/gtest.h>

#include "preload/simulator/core/graphs.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

TEST(Graphs, KeepNodesAndTheirOrder) {
  Graph* graph = nullptr;
  ASSERT_EQ(CreateGraph(&graph), Status::kOk);
  GraphNode* first = nullptr;
  GraphNode* second = nullptr;
  ASSERT_EQ(AddNode(graph, 5, nullptr, 0, &first), Status::kOk);
  ASSERT_EQ(AddNode(graph, 0, &first, 1, &second), Status::kOk);
  int type = -1;
  EXPECT_EQ(NodeType(first, &type), Status::kOk);
  EXPECT_EQ(type, 5);
  GraphNode* before[3] = {second, second, second};
  size_t count = 3;
  ASSERT_EQ(NodeDependencies(second, before, &count), Status::kOk);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(before[0], first);
  EXPECT_EQ(before[1], nullptr);
  EXPECT_EQ(DestroyGraph(graph), Status::kOk);
  EXPECT_EQ(NodeType(first, &type), Status::kInvalidHandle);
  EXPECT_EQ(DestroyGraph(graph), Status::kInvalidHandle);
}

TEST(Graphs, RefuseNodesOfOthers) {
  Graph* graph = nullptr;
  Graph* other = nullptr;
  ASSERT_EQ(CreateGraph(&graph), Status::kOk);
  ASSERT_EQ(CreateGraph(&other), Status::kOk);
  GraphNode* node = nullptr;
  ASSERT_EQ(AddNode(other, 0, nullptr, 0, &node), Status::kOk);
  GraphNode* added = nullptr;
  EXPECT_EQ(AddNode(graph, 0, &node, 1, &added), Status::kInvalidValue);
  EXPECT_EQ(DestroyGraph(graph), Status::kOk);
  EXPECT_EQ(DestroyGraph(other), Status::kOk);
}

TEST(Graphs, LaunchAsExecutables) {
  Graph* graph = nullptr;
  ASSERT_EQ(CreateGraph(&graph), Status::kOk);
  GraphExecutable* executable = nullptr;
  ASSERT_EQ(Instantiate(graph, &executable), Status::kOk);
  EXPECT_EQ(DestroyGraph(graph), Status::kOk);
  EXPECT_EQ(LaunchGraph(FindExecutable(executable), FindStream(nullptr)), Status::kOk);
  EXPECT_EQ(executable->launches, 1u);
  EXPECT_EQ(DestroyExecutable(executable), Status::kOk);
  EXPECT_EQ(LaunchGraph(FindExecutable(executable), FindStream(nullptr)), Status::kInvalidHandle);
}

}  // namespace
}  // namespace vramtrace::simulator
