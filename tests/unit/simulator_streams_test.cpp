#include <gtest/gtest.h>

#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/streams.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

Stream* NewStream(int priority = 0) {
  Stream* stream = nullptr;
  EXPECT_EQ(CreateStream(1, priority, &stream), Status::kOk);
  return stream;
}

Event* NewEvent() {
  Event* event = nullptr;
  EXPECT_EQ(CreateEvent(0, &event), Status::kOk);
  return event;
}

TEST(Streams, AreFoundByTheirHandles) {
  Stream* stream = NewStream(-3);
  EXPECT_EQ(FindStream(stream), stream);
  EXPECT_EQ(stream->priority, -3);
  Stream* legacy = FindStream(nullptr);
  ASSERT_NE(legacy, nullptr);
  EXPECT_TRUE(legacy->is_default);
  EXPECT_EQ(FindStream(reinterpret_cast<void*>(2)), legacy);
  EXPECT_EQ(DestroyStream(stream), Status::kOk);
  EXPECT_EQ(FindStream(stream), nullptr);
  EXPECT_EQ(DestroyStream(legacy), Status::kInvalidHandle);
}

TEST(Streams, HaveIdsOfTheirOwn) {
  Stream* first = NewStream();
  Stream* second = NewStream();
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(DestroyStream(first), Status::kOk);
  EXPECT_EQ(DestroyStream(second), Status::kOk);
}

TEST(Streams, ClampPriorities) {
  Stream* stream = NewStream(-100);
  EXPECT_EQ(stream->priority, kHighestStreamPriority);
  EXPECT_EQ(DestroyStream(stream), Status::kOk);
}

TEST(Events, MeasureAtLeastAMicrosecond) {
  Event* begin = NewEvent();
  Event* end = NewEvent();
  float elapsed = 0;
  EXPECT_EQ(ElapsedMilliseconds(begin, end, &elapsed), Status::kInvalidHandle) << "never recorded";
  ASSERT_EQ(RecordEvent(begin, FindStream(nullptr)), Status::kOk);
  ASSERT_EQ(RecordEvent(end, FindStream(nullptr)), Status::kOk);
  ASSERT_EQ(ElapsedMilliseconds(begin, end, &elapsed), Status::kOk);
  EXPECT_GE(elapsed, 1e-3f);
  EXPECT_EQ(DestroyEvent(begin), Status::kOk);
  EXPECT_EQ(FindEvent(begin), nullptr);
  EXPECT_EQ(DestroyEvent(end), Status::kOk);
}

TEST(Capture, TakesWorkIntoItsGraph) {
  Stream* stream = NewStream();
  ASSERT_EQ(BeginCapture(stream, nullptr), Status::kOk);
  EXPECT_EQ(BeginCapture(stream, nullptr), Status::kInvalidValue);
  CaptureWork(stream, 0);
  CaptureWork(stream, 0);
  Graph* graph = nullptr;
  ASSERT_EQ(EndCapture(stream, &graph), Status::kOk);
  EXPECT_EQ(stream->capture, nullptr);
  size_t count = 0;
  ASSERT_EQ(GraphNodes(graph, false, nullptr, &count), Status::kOk);
  EXPECT_EQ(count, 2u);
  ASSERT_EQ(GraphNodes(graph, true, nullptr, &count), Status::kOk);
  EXPECT_EQ(count, 1u) << "the second follows the first";
  EXPECT_EQ(DestroyGraph(graph), Status::kOk);
  EXPECT_EQ(EndCapture(stream, &graph), Status::kInvalidValue);
  EXPECT_EQ(DestroyStream(stream), Status::kOk);
}

TEST(Capture, SpreadsThroughEventsAndEndsForAll) {
  Stream* origin = NewStream();
  Stream* side = NewStream();
  Event* fork = NewEvent();
  ASSERT_EQ(BeginCapture(origin, nullptr), Status::kOk);
  ASSERT_EQ(RecordEvent(fork, origin), Status::kOk);
  ASSERT_EQ(WaitEvent(side, fork), Status::kOk);
  EXPECT_EQ(side->capture, origin->capture);
  CaptureWork(side, 0);
  Graph* graph = nullptr;
  EXPECT_EQ(EndCapture(side, &graph), Status::kInvalidValue) << "only its origin ends a capture";
  ASSERT_EQ(EndCapture(origin, &graph), Status::kOk);
  EXPECT_EQ(side->capture, nullptr);
  // An event of a capture that has ended draws no stream in.
  ASSERT_EQ(WaitEvent(side, fork), Status::kOk);
  EXPECT_EQ(side->capture, nullptr);
  EXPECT_EQ(DestroyGraph(graph), Status::kOk);
  EXPECT_EQ(DestroyEvent(fork), Status::kOk);
  EXPECT_EQ(DestroyStream(side), Status::kOk);
  EXPECT_EQ(DestroyStream(origin), Status::kOk);
}

TEST(Capture, IsRefusedOnTheDefaultStream) {
  EXPECT_EQ(BeginCapture(FindStream(nullptr), nullptr), Status::kInvalidValue);
}

}  // namespace
}  // namespace vramtrace::simulator
