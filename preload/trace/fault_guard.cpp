#include "preload/trace/fault_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace vramtrace::trace {
namespace {

struct Guarded {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // written before `begin`
};

constexpr size_t kMaxGuarded = 4096;
constinit Guarded guarded[kMaxGuarded];
constinit std::atomic<size_t> guarded_high_water{0};
constinit std::atomic<bool> mapping_lost{false};
constinit std::atomic<bool> installed{false};
constinit std::atomic<size_t> page_bytes{4096};
struct sigaction previous_action;

bool IsGuarded(uintptr_t address) {
  const size_t used = guarded_high_water.load(std::memory_order_acquire);
  for (size_t i = 0; i < used; ++i) {
    const uintptr_t begin = guarded[i].begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < guarded[i].end.load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

void PassOn(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    // The default: restore it and return, so that the fault repeats and the core shows the real place. A
    // signal that was sent with kill() does not repeat by itself.
    sigaction(signal, &previous_action, nullptr);
    if (info->si_code <= 0 && previous_action.sa_handler == SIG_DFL) raise(signal);
  }
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code > 0 && IsGuarded(address)) {
    const size_t page = page_bytes.load(std::memory_order_relaxed);
    void* const start = reinterpret_cast<void*>(address / page * page);
    void* const replaced =
        mmap(start, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (replaced != MAP_FAILED) {
      mapping_lost.store(true, std::memory_order_relaxed);
      errno = saved_errno;
      return;
    }
  }
  errno = saved_errno;
  PassOn(signal, info, context);
}

}  // namespace

void InstallFaultGuard() noexcept {
  if (installed.exchange(true)) return;
  page_bytes.store(static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  sigaction(SIGBUS, nullptr, &previous_action);
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

void GuardMapping(void* begin, size_t size) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  constexpr uintptr_t kClaimed = UINTPTR_MAX;  // lies above every address: guards nothing yet
  for (size_t i = 0; i < kMaxGuarded; ++i) {
    uintptr_t expected = 0;
    if (guarded[i].begin.load(std::memory_order_relaxed) != 0 ||
        !guarded[i].begin.compare_exchange_strong(expected, kClaimed)) {
      continue;
    }
    guarded[i].end.store(address + size, std::memory_order_relaxed);
    guarded[i].begin.store(address, std::memory_order_release);
    size_t high = guarded_high_water.load();
    while (high < i + 1 && !guarded_high_water.compare_exchange_weak(high, i + 1)) {
    }
    return;
  }
}

void UnguardMapping(void* begin) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t used = guarded_high_water.load();
  for (size_t i = 0; i < used; ++i) {
    if (guarded[i].begin.load(std::memory_order_relaxed) == address) {
      guarded[i].begin.store(0, std::memory_order_release);
      return;
    }
  }
}

bool MappingLost() noexcept { return mapping_lost.load(std::memory_order_relaxed); }

}  // namespace vramtrace::trace
