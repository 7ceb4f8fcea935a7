#pragma once
// Environment that keeps a dry run from reaching other people's machines: experiment trackers go offline,
// usage statistics are off.

#include <filesystem>

#include "analyzer/cli/launch/environment.h"

namespace vramtrace::launch {

// Writes every row of the table in trackers.cpp into `environment`. A value by which the user had already
// switched a tracker off is kept. What trackers insist on writing goes below `folder`.
void SetTrackersOffline(const std::filesystem::path& folder, Environment* environment);

// Also forbids Hugging Face's libraries to use the network: no download, no upload.
void SetHubOffline(Environment* environment);

}  // namespace vramtrace::launch
