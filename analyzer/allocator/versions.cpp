#include "analyzer/allocator/versions.h"

#include <array>

namespace vramtrace::allocator {
namespace {

using enum MessageStyle;
constexpr bool yes = true;
constexpr bool no = false;

// Columns in the order of VersionRules. How each was placed: README.md, "Versions".
// clang-format off
constexpr std::array kVersions = std::to_array<VersionRules>({
    // release, message,             one division, ">" with last, parse resets, expandable  overflow, no_split, 1.0 is   pool use  deferred
    //                               unrounded     interval       rounding      in private                      a limit  suspends  at end
    {{2, 0},    kCapacityInParentheses,   yes,          yes,           no,           no,         no,       no,       yes,     yes,      no},
    {{2, 1},    kNoLimit,                 yes,          yes,           no,           no,         no,       no,       yes,     yes,      no},
    {{2, 2},    kNoLimit,                 no,           yes,           no,           no,         no,       no,       yes,     yes,      no},
    {{2, 3},    kNoLimit,                 no,           yes,           no,           no,         no,       no,       yes,     yes,      no},
    {{2, 4},    kPrivatePools,            no,           yes,           no,           no,         no,       no,       yes,     yes,      no},
    {{2, 5},    kPrivatePools,            no,           yes,           no,           yes,        no,       no,       yes,     yes,      no},
    {{2, 6},    kLimit,                   no,           yes,           no,           yes,        no,       no,       yes,     yes,      no},
    {{2, 7},    kLimit,                   no,           yes,           no,           yes,        no,       no,       yes,     yes,      no},
    {{2, 8},    kLimit,                   no,           yes,           no,           yes,        yes,      no,       yes,     yes,      no},
    {{2, 9},    kLimit,                   no,           no,            yes,          yes,        yes,      no,       no,      yes,      no},
    {{2, 10},   kLimit,                   no,           no,            yes,          yes,        yes,      no,       no,      yes,      no},
    {{2, 11},   kLimit,                   no,           no,            yes,          yes,        yes,      yes,      no,      yes,      no},
    {{2, 12},   kLimit,                   no,           no,            yes,          yes,        yes,      yes,      no,      yes,      yes},
    {{2, 13},   kLimit,                   no,           no,            yes,          yes,        yes,      yes,      no,      no,       yes},
    {{2, 14},   kLimit,                   no,           no,            yes,          yes,        yes,      yes,      no,      no,       yes},
    {{2, 15},   kLimit,                   no,           no,            yes,          yes,        yes,      yes,      no,      no,       yes},
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
