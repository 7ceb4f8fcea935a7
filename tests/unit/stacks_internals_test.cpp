#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "preload/recorder/record/recorder.h"
#include "preload/recorder/stacks/internals.h"
#include "preload/recorder/stacks/python_layout.h"

namespace {

struct Written {
  std::string name;
  bool on;
  std::string reason;
  bool operator==(const Written&) const = default;
};
std::vector<Written> g_written;
bool g_recording = false;

}  // namespace

// What the recorder would do with it.
namespace vramtrace::record {
bool Recording() noexcept { return g_recording; }
void FeatureSet(std::string_view name, bool on, std::string_view reason) noexcept {
  g_written.push_back({std::string(name), on, std::string(reason)});
}
}  // namespace vramtrace::record

namespace vramtrace::stacks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Internals, AListSwitchesRowsOffByTheirWholeNames) {
  setenv("VRAMTRACE_OFF", "python_frames,labels", 1);
  EXPECT_TRUE(SwitchedOff(Internal::kPythonFrames));
  EXPECT_TRUE(SwitchedOff(Internal::kLabels));
  EXPECT_FALSE(SwitchedOff(Internal::kNativeFrames));
  EXPECT_FALSE(MadeToFail(Internal::kPythonFrames));
  setenv("VRAMTRACE_OFF", "python_frames_too,xlabels,,native_frames", 1);
  EXPECT_FALSE(SwitchedOff(Internal::kPythonFrames));
  EXPECT_FALSE(SwitchedOff(Internal::kLabels));
  EXPECT_TRUE(SwitchedOff(Internal::kNativeFrames));
  unsetenv("VRAMTRACE_OFF");
  EXPECT_FALSE(SwitchedOff(Internal::kNativeFrames));
}

TEST(Internals, StatesWaitForTheTraceAndAreWrittenOnce) {
  g_recording = false;
  SetInternal(Internal::kAutogradPosition, true, "checked");
  SetInternal(Internal::kRequestedSizes, true, "checked too");
  EXPECT_THAT(g_written, IsEmpty());
  g_recording = true;
  WriteInternals();
  EXPECT_THAT(g_written, ElementsAre(Written{"requested_sizes", true, "checked too"},
                                     Written{"autograd_node", true, "checked"}));
  g_written.clear();
  LoseInternal(Internal::kRequestedSizes, "a surprise");
  LoseInternal(Internal::kRequestedSizes, "again");
  EXPECT_THAT(g_written, ElementsAre(Written{"requested_sizes", false, "a surprise"}));
  EXPECT_FALSE(IsOn(Internal::kRequestedSizes));
  EXPECT_TRUE(IsOn(Internal::kAutogradPosition));
}

TEST(PythonLayout, HasARowForEverySupportedVersionAndNoOther) {
  for (int minor = 9; minor <= 14; ++minor) {
    ASSERT_NE(FindPythonLayout(minor), nullptr) << minor;
    EXPECT_EQ(FindPythonLayout(minor)->minor, minor);
  }
  EXPECT_EQ(FindPythonLayout(8), nullptr);
  EXPECT_EQ(FindPythonLayout(15), nullptr);
}

}  // namespace
}  // namespace vramtrace::stacks
