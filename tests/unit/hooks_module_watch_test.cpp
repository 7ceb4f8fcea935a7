#include <gtest/gtest.h>

#include <array>

#include "preload/recorder/hooks/module_watch.h"

namespace {

int g_calls = 0;
bool g_queue_full = false;
bool g_grad_mode = true;

bool CountCall() {
  ++g_calls;
  return !g_queue_full;
}

}  // namespace

namespace vramtrace::hooks {

bool GradModeEnabled() noexcept { return g_grad_mode; }

namespace {

constexpr uint32_t kModules = static_cast<uint32_t>(LabelRequest::kModules);
constexpr uint32_t kInputs = static_cast<uint32_t>(LabelRequest::kInputs);

// An allocation under the given modules, innermost first.
template <size_t kCount>
void Allocate(const std::array<const void*, kCount>& modules, const char* operator_name = nullptr) {
  stacks::PythonFrame frames[kCount + 1] = {};
  for (size_t i = 0; i < kCount; ++i) frames[i].module_object = modules[i];
  record::CapturedStack stack;
  stack.python = frames;
  stack.python_count = static_cast<int>(kCount + 1);
  record::AutogradPosition autograd;
  autograd.operator_name = operator_name;
  WatchModules(stack, autograd);
}

class ModuleWatch : public testing::Test {
 protected:
  void SetUp() override {
    g_calls = 0;
    g_queue_full = false;
    SetPendingCaller(&CountCall);
    (void)TakeLabelRequests();
    ExpectInputs();
  }
  char objects_[8 * 16];
  const void* Object(int i) const { return &objects_[i * 16]; }
};

TEST_F(ModuleWatch, AsksOnceForAnUnknownModuleAndOnceForInputs) {
  Allocate(std::array{Object(0), Object(1)});
  EXPECT_EQ(g_calls, 1) << "one pending call serves all requests";
  EXPECT_EQ(TakeLabelRequests(), kModules | kInputs);
  Allocate(std::array{Object(0), Object(1)});
  EXPECT_EQ(g_calls, 1);
  ExpectInputs();
  Allocate(std::array{Object(0)});
  EXPECT_EQ(TakeLabelRequests(), kInputs);
}

TEST_F(ModuleWatch, AModuleThatWasFreedIsUnknownAgain) {
  Allocate(std::array{Object(2)});
  EXPECT_EQ(TakeLabelRequests(), kModules | kInputs);
  ModuleIsGone(Object(2));
  Allocate(std::array{Object(2)});
  EXPECT_EQ(TakeLabelRequests(), kModules);
  ModuleIsKnown(Object(3));
  Allocate(std::array{Object(3)});
  EXPECT_EQ(TakeLabelRequests(), 0U);
}

TEST_F(ModuleWatch, RecomputationInBackwardIsNoNewForward) {
  Allocate(std::array{Object(4)}, "CheckpointFunctionBackward");
  EXPECT_EQ(TakeLabelRequests(), 0U);
}

TEST_F(ModuleWatch, AFullQueueIsAskedAgain) {
  g_queue_full = true;
  AskForLabels(LabelRequest::kOutOfMemory);
  EXPECT_EQ(TakeLabelRequests(), 0U);
  g_queue_full = false;
  AskForLabels(LabelRequest::kOutOfMemory);
  EXPECT_EQ(g_calls, 2);
  EXPECT_EQ(TakeLabelRequests(), static_cast<uint32_t>(LabelRequest::kOutOfMemory));
}

TEST_F(ModuleWatch, EvaluationIsAModuleWithoutGradients) {
  Allocate(std::array{Object(5)});
  EXPECT_FALSE(HasSeenEvaluation());
  g_grad_mode = false;
  Allocate(std::array{Object(5)});
  EXPECT_TRUE(HasSeenEvaluation());
  g_grad_mode = true;
}

}  // namespace
}  // namespace vramtrace::hooks
