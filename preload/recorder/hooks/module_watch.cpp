#include "preload/recorder/hooks/module_watch.h"

#include <atomic>
#include <cstddef>

#include "preload/recorder/hooks/autograd_position.h"

namespace vramtrace::hooks {
namespace {

std::atomic<PendingCaller> g_pending{nullptr};
std::atomic<uint32_t> g_requests{0};
std::atomic<bool> g_ask_next{false};
std::atomic<bool> g_expect_inputs{true};
std::atomic<bool> g_seen_evaluation{false};

// Known module objects: an open-addressed set of addresses. Entries are only ever overwritten, so that
// readers need no lock; a lost entry costs one more request.
constexpr size_t kSlots = 1 << 14;
constexpr size_t kProbes = 16;
std::atomic<const void*> g_known[kSlots];

size_t SlotOf(const void* object) {
  return static_cast<size_t>((reinterpret_cast<uintptr_t>(object) >> 4) * 0x9e3779b97f4a7c15 >> 40) % kSlots;
}

bool IsKnown(const void* object) {
  const size_t slot = SlotOf(object);
  for (size_t i = 0; i < kProbes; ++i) {
    if (g_known[(slot + i) % kSlots].load(std::memory_order_relaxed) == object) return true;
  }
  return false;
}

}  // namespace

void SetPendingCaller(PendingCaller caller) noexcept { g_pending.store(caller, std::memory_order_release); }

void AskForLabels(LabelRequest request) noexcept {
  const PendingCaller caller = g_pending.load(std::memory_order_acquire);
  if (caller == nullptr) return;
  const uint32_t bit = static_cast<uint32_t>(request);
  // One call is enough for every request that comes up before it is made.
  if (g_requests.fetch_or(bit, std::memory_order_acq_rel) != 0) return;
  if (!caller()) g_requests.fetch_and(~bit, std::memory_order_acq_rel);
}

uint32_t TakeLabelRequests() noexcept { return g_requests.exchange(0, std::memory_order_acq_rel); }

void WatchModules(const record::CapturedStack& stack, const record::AutogradPosition& autograd) noexcept {
  if (g_pending.load(std::memory_order_relaxed) == nullptr) return;
  if (g_ask_next.load(std::memory_order_relaxed) && g_ask_next.exchange(false, std::memory_order_relaxed)) {
    AskForLabels(LabelRequest::kModules);
  }
  bool any = false;
  bool unknown = false;
  for (int i = 0; i < stack.python_count; ++i) {
    const void* object = stack.python[i].module_object;
    if (object == nullptr) continue;
    any = true;
    if (IsKnown(object)) continue;
    unknown = true;
    ModuleIsKnown(object);  // one request an object, whether a name is found or not
  }
  if (!any || autograd.operator_name != nullptr) return;
  if (unknown) AskForLabels(LabelRequest::kModules);
  if (g_expect_inputs.load(std::memory_order_relaxed) &&
      g_expect_inputs.exchange(false, std::memory_order_relaxed)) {
    AskForLabels(LabelRequest::kInputs);
  }
  if (!g_seen_evaluation.load(std::memory_order_relaxed) && !GradModeEnabled()) {
    g_seen_evaluation.store(true, std::memory_order_relaxed);
  }
}

void ModuleIsKnown(const void* object) noexcept {
  const size_t slot = SlotOf(object);
  for (size_t i = 0; i < kProbes; ++i) {
    auto& entry = g_known[(slot + i) % kSlots];
    const void* there = entry.load(std::memory_order_relaxed);
    if (there == object) return;
    if (there == nullptr || i + 1 == kProbes) {
      entry.store(object, std::memory_order_relaxed);
      return;
    }
  }
}

void ModuleIsGone(const void* object) noexcept {
  const size_t slot = SlotOf(object);
  for (size_t i = 0; i < kProbes; ++i) {
    auto& entry = g_known[(slot + i) % kSlots];
    if (entry.load(std::memory_order_relaxed) == object) entry.store(nullptr, std::memory_order_relaxed);
  }
}

void AskAtNextAllocation() noexcept { g_ask_next.store(true, std::memory_order_relaxed); }

void ExpectInputs() noexcept { g_expect_inputs.store(true, std::memory_order_relaxed); }

bool HasSeenEvaluation() noexcept { return g_seen_evaluation.load(std::memory_order_relaxed); }

}  // namespace vramtrace::hooks
