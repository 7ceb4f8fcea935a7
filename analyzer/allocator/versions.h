#pragma once

#include <cstdint>
#include <span>

namespace vramtrace::allocator {

struct PyTorchVersion {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;

  friend constexpr auto operator<=>(const PyTorchVersion&, const PyTorchVersion&) = default;
};

// The wording of the out-of-memory message, which decides the figures it holds.
enum class MessageStyle : std::uint8_t {
  kCapacityInParentheses,  // 2.0
  kMisspelt,               // 2.1: "capacty", and the limit is left out
  kNoLimit,                // 2.2
  kDeviceAsByte,           // 2.3: the device's number is a raw byte, which ends the text for device 0
  kPrivatePools,           // 2.4: memory of private pools is told apart
  kLimit,                  // 2.5 and later: the limit is back
};

// Which of two free blocks of the same size is taken first.
enum class TieOrder : std::uint8_t {
  kLowestAddress,
  kOldestBlock,    // 2.12: the one that was carved first, whatever its place
  kOldestSegment,  // then the lowest address in it, so that the driver's choice of addresses does not matter
};

// What differs between releases in the memory the allocator takes. Everything else is the same in all of
// them. The pull request or the run that places a switch is named in the table (versions.cpp).
struct VersionRules {
  PyTorchVersion version;
  MessageStyle message;
  TieOrder ties;
  bool one_division_is_unrounded;    // roundup_power2_divisions:1 leaves the size as it was asked for
  bool open_interval_includes_last;  // ">" of the list form starts at the last listed interval, not one above
  bool parse_resets_non_split_rounding;  // max_non_split_rounding_mb falls back to the size of large segments
  bool expandable_in_private_pools;      // private pools may grow expandable segments
  bool pools_as_overflow;                // use_on_oom pools exist
  bool no_split_pools;                   // no_split pools exist
  bool full_fraction_limits;             // a memory fraction of 1.0 is a limit
  bool pool_use_suspends_release;      // a private pool in use stops events and the release of cached memory
  bool short_range_is_given_back;      // an address range too short for its request is not kept
  bool deferred_frees_at_capture_end;  // else at the next allocation after it
};

// One row a release, oldest first.
[[nodiscard]] std::span<const VersionRules> AllVersions();

// The rules of `version`; of the newest known release for a newer one; nullptr for one older than 2.0.
[[nodiscard]] const VersionRules* FindVersion(PyTorchVersion version);

}  // namespace vramtrace::allocator
