#include "analyzer/cli/launch/shield.h"

#include <fmt/format.h>

namespace vramtrace::launch {

std::filesystem::path Shield::Private() const { return layer ? layer->Private() : temporary->Path(); }

Shield RaiseShield(const ShieldOptions& options, std::string* problem) {
  Shield shield;
  if (!options.in_place && options.allow_layer) {
    shield.layer = ScratchLayer::Create(options.folders, options.output, &shield.why_no_layer);
    if (shield.layer) {
      shield.kind = ShieldKind::kScratchLayer;
      return shield;
    }
  }
  std::string why;
  shield.temporary = TemporaryFolder::Create(&why);
  if (!shield.temporary) {
    *problem = fmt::format("cannot make a temporary folder: {}; set TMPDIR to a folder with room", why);
    return shield;
  }
  if (options.in_place) return shield;
  if (!OverwriteGuard::Available()) {
    *problem = fmt::format(
        "this machine can neither mount a scratch layer ({}) nor watch for overwritten files (seccomp); "
        "run it in a copy of the folder with --in-place, which protects nothing",
        shield.why_no_layer);
    return shield;
  }
  shield.kind = ShieldKind::kOverwriteGuard;
  shield.guard = std::make_unique<OverwriteGuard>(options.folders);
  return shield;
}

}  // namespace vramtrace::launch
