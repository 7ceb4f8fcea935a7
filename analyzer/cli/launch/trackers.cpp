#include "analyzer/cli/launch/trackers.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrace::launch {
namespace {

struct Setting {
  std::string_view name;
  std::string_view value;              // "@" stands for the run's private folder
  std::vector<std::string_view> fine;  // values that the user may have set and that harm no more
};

// Each from its library's public documentation of environment variables.
const std::vector<Setting>& Table() {
  static const std::vector<Setting> table = {
      // https://docs.wandb.ai/guides/track/environment-variables
      {"WANDB_MODE", "offline", {"disabled", "dryrun"}},
      {"WANDB_SILENT", "true", {}},
      {"WANDB_ERROR_REPORTING", "false", {}},
      {"WANDB_DIR", "@", {}},
      // https://mlflow.org/docs/latest/tracking
      {"MLFLOW_TRACKING_URI", "file:@/mlruns", {}},
      // https://www.comet.com/docs/v2/guides/experiment-management/configure-sdk
      {"COMET_MODE", "OFFLINE", {"DISABLED", "disabled", "offline"}},
      {"COMET_START_ONLINE", "false", {"0", "False"}},
      {"COMET_OFFLINE_DIRECTORY", "@", {}},
      // https://docs.neptune.ai/api/environment_variables
      {"NEPTUNE_MODE", "offline", {"debug", "disabled"}},
      {"NEPTUNE_DATA_DIRECTORY", "@/neptune", {}},
      // https://clear.ml/docs/latest/docs/configs/env_vars
      {"CLEARML_OFFLINE_MODE", "1", {}},
      // https://docs.swanlab.cn/en/api/environment-variable.html
      {"SWANLAB_MODE", "offline", {"disabled", "local"}},
      // https://dvc.org/doc/studio/user-guide/experiments
      {"DVC_STUDIO_OFFLINE", "true", {}},
      // https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
      {"HF_HUB_DISABLE_TELEMETRY", "1", {}},
      {"DO_NOT_TRACK", "1", {}},
      // https://docs.ray.io/en/latest/cluster/usage-stats.html
      {"RAY_USAGE_STATS_ENABLED", "0", {}},
      // https://www.gradio.app/guides/environment-variables
      {"GRADIO_ANALYTICS_ENABLED", "False", {}},
  };
  return table;
}

}  // namespace

void SetTrackersOffline(const std::filesystem::path& folder, Environment* environment) {
  for (const Setting& setting : Table()) {
    const std::string_view users = environment->Get(setting.name).value_or("");
    if (std::find(setting.fine.begin(), setting.fine.end(), users) != setting.fine.end()) continue;
    std::string value(setting.value);
    const size_t place = value.find('@');
    if (place != std::string::npos) value.replace(place, 1, folder.string());
    environment->Set(setting.name, value);
  }
}

void SetHubOffline(Environment* environment) {
  for (const std::string_view name : {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    environment->Set(name, "1");
  }
}

}  // namespace vramtrace::launch
