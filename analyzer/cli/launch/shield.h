#pragma once
// How a dry run is kept from harming the user's files: a scratch layer where one can be mounted, else the
// overwrite guard, else (asked for) nothing.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/cli/launch/overwrite_guard.h"
#include "analyzer/cli/launch/scratch_layer.h"
#include "analyzer/cli/launch/temporary_folder.h"

namespace vramtrace::launch {

enum class ShieldKind { kScratchLayer, kOverwriteGuard, kNone };

struct Shield {
  ShieldKind kind = ShieldKind::kNone;
  std::unique_ptr<ScratchLayer> layer;         // kScratchLayer
  std::unique_ptr<OverwriteGuard> guard;       // kOverwriteGuard
  std::unique_ptr<TemporaryFolder> temporary;  // the other two
  std::string why_no_layer;                    // kOverwriteGuard: a sentence

  // Where reports and trackers write, whatever the kind; reachable by this path inside and outside.
  [[nodiscard]] std::filesystem::path Private() const;
};

struct ShieldOptions {
  std::vector<std::filesystem::path> folders;  // to protect; existing, absolute, without links
  std::filesystem::path output;                // where the trace goes
  bool in_place = false;
  bool allow_layer = true;  // false for tests of the guard
};

// An error in `problem` (with the remedy) when there is no protection and none was waived.
[[nodiscard]] Shield RaiseShield(const ShieldOptions& options, std::string* problem);

}  // namespace vramtrace::launch
