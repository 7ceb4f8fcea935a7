#include "preload/recorder/stacks/hidden_code.h"

namespace vramtrace::stacks {

constinit std::atomic<const void*> g_hidden_code[kHiddenSlots];

void HideCode(const void* code) noexcept {
  for (size_t slot = HiddenSlot(code), tried = 0; tried < kHiddenSlots / 2; ++slot, ++tried) {
    auto& entry = g_hidden_code[slot % kHiddenSlots];
    const void* there = entry.load(std::memory_order_relaxed);
    if (there == code) return;
    if (there != nullptr) continue;
    entry.store(code, std::memory_order_release);
    return;
  }
}

}  // namespace vramtrace::stacks
