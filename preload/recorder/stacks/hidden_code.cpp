#include "preload/recorder/stacks/hidden_code.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramtrace::stacks {
namespace {

constexpr size_t kSlots = 1024;  // preload/python has under 200 code objects
std::atomic<const void*> g_slots[kSlots];

size_t SlotOf(const void* code) {
  return static_cast<size_t>((reinterpret_cast<uintptr_t>(code) >> 4) * 0x9e3779b97f4a7c15 >> 54) % kSlots;
}

}  // namespace

void HideCode(const void* code) noexcept {
  for (size_t i = 0; i < kSlots / 2; ++i) {
    auto& slot = g_slots[(SlotOf(code) + i) % kSlots];
    const void* there = slot.load(std::memory_order_relaxed);
    if (there == code) return;
    if (there == nullptr) {
      slot.store(code, std::memory_order_release);
      return;
    }
  }
}

bool IsHiddenCode(const void* code) noexcept {
  for (size_t i = 0; i < kSlots / 2; ++i) {
    const void* there = g_slots[(SlotOf(code) + i) % kSlots].load(std::memory_order_acquire);
    if (there == nullptr) return false;
    if (there == code) return true;
  }
  return false;
}

}  // namespace vramtrace::stacks
