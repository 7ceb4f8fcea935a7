#pragma once
// hooked_functions.def as an enumeration and a table.

#include <cstddef>

namespace vramtrace::hooks {

enum class Family { kRuntime, kDriver, kC10, kLoader };

enum class Role {
  kAllocate,  // device memory, or what stands for it
  kFree,
  kMap,
  kTrim,          // gives memory that a pool or the graphs keep back to the device
  kAllocateHost,  // pinned or registered host memory
  kFreeHost,
  kQuery,   // what the device says of its memory
  kLookup,  // hands out addresses of other functions
  kReport,  // the caching allocator's own reports
};

enum class Hook : int {
#define VRAMTRACE_HOOK(identifier, symbol, family, role) identifier,
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK
  kCount
};

struct HookRow {
  const char* symbol;
  Family family;
  Role role;
};

inline constexpr HookRow kHooks[] = {
#define VRAMTRACE_HOOK(identifier, symbol, family, role) {symbol, Family::family, Role::role},
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK
};
inline constexpr size_t kHookCount = static_cast<size_t>(Hook::kCount);
static_assert(sizeof kHooks / sizeof kHooks[0] == kHookCount);

constexpr const HookRow& RowOf(Hook hook) { return kHooks[static_cast<size_t>(hook)]; }

}  // namespace vramtrace::hooks
