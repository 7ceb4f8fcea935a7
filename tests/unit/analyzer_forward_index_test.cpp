#include <gtest/gtest.h>

#include "analyzer/timeline/forward_index.h"

namespace vramtrace::timeline {
namespace {

using model::StackId;
using model::StringId;
using trace::Event;

Event Forward(uint64_t number, uint32_t stack, uint64_t sequence) {
  Event event;
  event.sequence = sequence;
  event.stack = StackId{stack};
  event.thread = model::ThreadId{1};
  event.autograd.sequence_number = number;
  return event;
}
trace::AutogradPosition Node(uint64_t number, uint64_t thread = 1) { return {number, StringId{5}, thread}; }
Event Backward(uint64_t number, uint64_t thread = 1) {
  Event event;
  event.autograd = Node(number, thread);
  return event;
}

TEST(ForwardIndex, NodeBelongsToTheFirstForwardWithAGreaterNumber) {
  ForwardIndex index;
  index.Add(Forward(10, 100, 1));
  index.Add(Forward(11, 110, 2));
  index.Add(Forward(11, 111, 3));
  index.Add(Forward(13, 130, 4));
  index.Add(Backward(12));
  EXPECT_EQ(index.Find(Node(10))->stack, StackId{110});
  EXPECT_EQ(index.Find(Node(11))->stack, StackId{130});
  EXPECT_EQ(index.Find(Node(12))->stack, StackId{130});
  EXPECT_EQ(index.Find(Node(13)), nullptr);
  EXPECT_EQ(index.Find({11, StringId::kNone, 1}), nullptr);  // no node runs
}

TEST(ForwardIndex, NodesOfAnotherThreadsGraphAreNotLookedUp) {
  ForwardIndex index;
  index.Add(Forward(10, 100, 1));
  index.Add(Backward(9, 1));
  EXPECT_NE(index.Find(Node(9, 1)), nullptr);
  EXPECT_EQ(index.Find(Node(9, 2)), nullptr);
}

TEST(ForwardIndex, ForgetsStepsThatAreTwoBack) {
  ForwardIndex index;
  index.Add(Forward(10, 100, 1));
  index.Add(Backward(9));
  index.EndStep();
  EXPECT_NE(index.Find(Node(9)), nullptr);
  index.Add(Forward(20, 200, 2));
  index.EndStep();
  EXPECT_EQ(index.Find(Node(9))->stack, StackId{200});
}

}  // namespace
}  // namespace vramtrace::timeline
