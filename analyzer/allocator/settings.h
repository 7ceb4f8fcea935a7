#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analyzer/allocator/size_classes.h"
#include "analyzer/allocator/units.h"
#include "analyzer/allocator/versions.h"

namespace vramtrace::allocator {

// What PYTORCH_CUDA_ALLOC_CONF sets, as far as it changes the device's memory.
struct Settings {
  Bytes max_split = kUnlimited;              // larger blocks are not split
  Bytes max_non_split_rounding = 20 * kMiB;  // waste allowed when such a block is used again
  Bytes large_segment = kLargeSegment;
  PowerOfTwoDivisions power_of_two_divisions{};
  double garbage_collection_threshold = 0;  // of the memory limit; without a limit it does nothing
  double memory_fraction = 1.0;             // of the card's total, for segments and pages
  bool fraction_given = false;              // per_process_memory_fraction was among the options
  bool expandable_segments = false;
  bool reject_above_fraction = false;       // throw_on_cudamalloc_oom: no retry above the fraction
  bool native_backend = true;               // false: cudaMallocAsync, which this model does not hold for
  std::vector<std::string> without_effect;  // options read that do not change the device's memory

  friend bool operator==(const Settings&, const Settings&) = default;
};

struct SettingsError {
  std::string option;    // as written
  std::string expected;  // what would be accepted
};

// Reads the text of PYTORCH_CUDA_ALLOC_CONF, or of _set_allocator_settings on top of `before`, as the release
// does: options that the release does not have are an error, and some options not in the text fall back to
// their defaults.
[[nodiscard]] std::variant<Settings, SettingsError> ParseSettings(std::string_view text,
                                                                  const VersionRules& rules,
                                                                  const Settings& before = {});

// The names of the options that a release has, in the order of the table.
[[nodiscard]] std::vector<std::string_view> OptionNames(const VersionRules& rules);

}  // namespace vramtrace::allocator
