#pragma once
// Where a call goes on to. A hook forwards to what the program would have reached without us:
//
//  1. For the CUDA runtime the one that the calling module is linked to: one process can hold several, and
//     the simulated device preloads one of each major.
//  2. RTLD_NEXT: what the dynamic linker would have bound, e.g. the simulated device preloaded behind us.
//  3. The scope of the module that called: libraries opened with RTLD_LOCAL are in no global scope.
//  4. What a program was answered that asked for the function by name on a handle (AnswerFor).
//  5. The library's well-known names, where it is loaded already (RTLD_NOLOAD: nothing is ever loaded).
//
// Every answer that lies in this library is refused: it would be a call to ourselves.

#include "preload/recorder/hooks/hook_list.h"

namespace vramtrace::hooks {

// The real function of a row, or nullptr. `caller` is the hook's return address.
[[nodiscard]] void* FindReal(Hook hook, const void* caller) noexcept;

// The same for a function that is not hooked, by name. Not cached: for rare calls.
[[nodiscard]] void* FindReal(const char* symbol, Family family, const void* caller) noexcept;

template <typename Function>
[[nodiscard]] Function* RealOf(Hook hook, Function*, const void* caller) noexcept {
  return reinterpret_cast<Function*>(FindReal(hook, caller));
}

template <typename Function>
[[nodiscard]] Function* RealOf(const char* symbol, Family family, Function*, const void* caller) noexcept {
  return reinterpret_cast<Function*>(FindReal(symbol, family, caller));
}

// A program asked for `address` by name and is to get our definition instead, which then has to go on to it.
// False where it would go on to another one.
[[nodiscard]] bool AnswerFor(Hook hook, void* address) noexcept;

[[nodiscard]] bool IsOwnAddress(const void* address) noexcept;

}  // namespace vramtrace::hooks
