// Techniques that change the allocator and not the requests.

#include <gtest/gtest.h>

#include "tests/unit/forecast_technique_model.h"

namespace vramtrace::forecast {
namespace {

TEST(ExpandableSegmentsTest, ChangesTheReplayOnly) {
  testing::LinearModel model;
  const Stream edited = std::get<Stream>(testing::Apply(model.stream(), "expandable-segments"));
  EXPECT_EQ(edited.events.size(), model.stream().events.size());
  ReplayOptions options = OptionsOf(edited.facts).value();
  const Outcome before = Replay(edited, options);
  EXPECT_FALSE(options.settings.expandable_segments);
  FindTechnique("expandable-segments")->settings(&options, {});
  EXPECT_TRUE(options.settings.expandable_segments);
  const Outcome after = Replay(edited, options);
  EXPECT_EQ(after.allocated.bytes, before.allocated.bytes);
  EXPECT_LE(after.reserved.bytes, before.reserved.bytes);
}

TEST(ExpandableSegmentsTest, IsOnWhereTheEnvironmentSaysSo) {
  testing::LinearModel model;
  EXPECT_FALSE(FindTechnique("expandable-segments")->is_on(model.stream()));
  model.stream().facts.allocator_settings = "max_split_size_mb:64,expandable_segments:True";
  EXPECT_TRUE(FindTechnique("expandable-segments")->is_on(model.stream()));
}

}  // namespace
}  // namespace vramtrace::forecast
