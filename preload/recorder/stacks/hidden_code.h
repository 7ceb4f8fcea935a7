#pragma once
// Code objects whose frames never appear in a recorded stack: those of preload/python. Asked for every frame
// of every event: inline, and one load where the answer is no.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramtrace::stacks {

inline constexpr size_t kHiddenSlots = 1024;  // preload/python has under 200 code objects
extern std::atomic<const void*> g_hidden_code[kHiddenSlots];

inline size_t HiddenSlot(const void* code) noexcept {
  return static_cast<size_t>((reinterpret_cast<uintptr_t>(code) >> 4) * 0x9e3779b97f4a7c15 >> 54) %
         kHiddenSlots;
}

// The caller keeps `code` alive for the rest of the process. Called with the GIL held.
void HideCode(const void* code) noexcept;

[[nodiscard]] inline bool IsHiddenCode(const void* code) noexcept {
  for (size_t slot = HiddenSlot(code), tried = 0; tried < kHiddenSlots / 2; ++slot, ++tried) {
    const void* there = g_hidden_code[slot % kHiddenSlots].load(std::memory_order_relaxed);
    if (there == nullptr) return false;
    if (there == code) return true;
  }
  return false;
}

}  // namespace vramtrace::stacks
