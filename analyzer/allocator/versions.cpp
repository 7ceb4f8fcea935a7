#include "analyzer/allocator/versions.h"

#include <array>

namespace vramtrace::allocator {
namespace {

using enum MessageStyle;
using enum TieOrder;
constexpr bool yes = true;
constexpr bool no = false;

// Columns in the order of VersionRules. How each was placed: README.md, "Versions".
// clang-format off
constexpr std::array kVersions = std::to_array<VersionRules>({
    // version message                  ties            one division  ">" with last  parse resets  expandable  overflow  no_split  1.0 is   pool use  short range  deferred
    //                                                  unrounded     interval       rounding      in private                      a limit  suspends  given back   at end
    {{2, 0},  kCapacityInParentheses,  kLowestAddress, yes,          yes,           no,           no,         no,       no,       yes,     yes,      no,         no},
    {{2, 1},  kMisspelt,               kLowestAddress, yes,          yes,           no,           no,         no,       no,       yes,     yes,      no,         no},
    {{2, 2},  kNoLimit,                kLowestAddress, yes,          yes,           no,           no,         no,       no,       yes,     yes,      no,         no},
    {{2, 3},  kDeviceAsByte,           kLowestAddress, yes,          yes,           no,           no,         no,       no,       yes,     yes,      no,         no},
    {{2, 4},  kPrivatePools,           kLowestAddress, no,           yes,           no,           no,         no,       no,       yes,     yes,      no,         no},
    {{2, 5},  kLimit,                  kLowestAddress, no,           yes,           no,           yes,        no,       no,       yes,     yes,      no,         no},
    {{2, 6},  kLimit,                  kLowestAddress, no,           yes,           no,           yes,        no,       no,       yes,     yes,      no,         no},
    {{2, 7},  kLimit,                  kLowestAddress, no,           yes,           no,           yes,        no,       no,       yes,     yes,      no,         no},
    {{2, 8},  kLimit,                  kLowestAddress, no,           yes,           no,           yes,        yes,      no,       yes,     yes,      no,         no},
    {{2, 9},  kLimit,                  kLowestAddress, no,           yes,           no,           yes,        yes,      no,       yes,     yes,      no,         no},
    {{2, 10}, kLimit,                  kLowestAddress, no,           no,            no,           yes,        yes,      yes,      no,      yes,      no,         no},
    {{2, 11}, kLimit,                  kLowestAddress, no,           no,            yes,          yes,        yes,      yes,      no,      yes,      no,         no},
    {{2, 12}, kLimit,                  kOldestBlock,   no,           no,            yes,          yes,        yes,      yes,      no,      yes,      no,         yes},
    {{2, 13}, kLimit,                  kOldestSegment, no,           no,            yes,          yes,        yes,      yes,      no,      no,       no,         yes},
    {{2, 14}, kLimit,                  kOldestSegment, no,           no,            yes,          yes,        yes,      yes,      no,      no,       no,         yes},
    {{2, 15}, kLimit,                  kOldestSegment, no,           no,            yes,          yes,        yes,      yes,      no,      no,       yes,        yes},
});
// clang-format on

}  // namespace

std::span<const VersionRules> AllVersions() { return kVersions; }

const VersionRules* FindVersion(PyTorchVersion version) {
  const VersionRules* found = nullptr;
  for (const VersionRules& rules : kVersions) {
    if (rules.version <= version) found = &rules;
  }
  return found;
}

}  // namespace vramtrace::allocator
