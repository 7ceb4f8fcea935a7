#include <gtest/gtest.h>

#include "analyzer/cli/launch/trackers.h"

namespace vramtrace::launch {
namespace {

TEST(Trackers, GoOfflineWhateverTheUserHadSet) {
  const char* const entries[] = {"WANDB_MODE=online", "MLFLOW_TRACKING_URI=https://tracking.example",
                                 "NEPTUNE_MODE=async", nullptr};
  Environment environment(entries);
  SetTrackersOffline("/private", &environment);
  EXPECT_EQ(environment.Get("WANDB_MODE"), "offline");
  EXPECT_EQ(environment.Get("WANDB_DIR"), "/private");
  EXPECT_EQ(environment.Get("MLFLOW_TRACKING_URI"), "file:/private/mlruns");
  EXPECT_EQ(environment.Get("NEPTUNE_MODE"), "offline");
  EXPECT_EQ(environment.Get("CLEARML_OFFLINE_MODE"), "1");
  EXPECT_EQ(environment.Get("COMET_MODE"), "OFFLINE");
  EXPECT_EQ(environment.Get("SWANLAB_MODE"), "offline");
  EXPECT_EQ(environment.Get("HF_HUB_DISABLE_TELEMETRY"), "1");
}

TEST(Trackers, StayDisabledWhereTheUserDisabledThem) {
  const char* const entries[] = {"WANDB_MODE=disabled", "NEPTUNE_MODE=debug", nullptr};
  Environment environment(entries);
  SetTrackersOffline("/private", &environment);
  EXPECT_EQ(environment.Get("WANDB_MODE"), "disabled");
  EXPECT_EQ(environment.Get("NEPTUNE_MODE"), "debug");
}

TEST(Trackers, LeaveDownloadsAloneUnlessAsked) {
  const char* const none[] = {nullptr};
  Environment environment(none);
  SetTrackersOffline("/private", &environment);
  EXPECT_FALSE(environment.Get("HF_HUB_OFFLINE").has_value());
  SetHubOffline(&environment);
  EXPECT_EQ(environment.Get("HF_HUB_OFFLINE"), "1");
  EXPECT_EQ(environment.Get("TRANSFORMERS_OFFLINE"), "1");
}

}  // namespace
}  // namespace vramtrace::launch
