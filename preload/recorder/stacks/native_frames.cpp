#include "preload/recorder/stacks/native_frames.h"

#include <dlfcn.h>

#include <atomic>

#include "preload/recorder/stacks/internals.h"

namespace vramtrace::stacks {
namespace {

using Backtrace = int (*)(void** buffer, int size);

enum class State : int { kNotTried, kTrying, kReady, kAbsent };
std::atomic<State> g_state{State::kNotTried};
std::atomic<Backtrace> g_backtrace{nullptr};

// Where this library is mapped: the linker's own symbols, so that asking takes no lock.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char _end[];

bool IsOwnFrame(const void* pc) { return pc >= __ehdr_start && pc < _end; }

void Open() {
  if (SwitchedOff(Internal::kNativeFrames)) {
    g_state.store(State::kAbsent, std::memory_order_release);
    SetInternal(Internal::kNativeFrames, false, "switched off by VRAMTRACE_OFF");
    return;
  }
  // RTLD_LOCAL keeps libunwind's _Unwind_* names away from the program's C++ exceptions.
  const char* name = MadeToFail(Internal::kNativeFrames) ? "libunwind-absent.so.8" : "libunwind.so.8";
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  auto backtrace =
      library == nullptr ? nullptr : reinterpret_cast<Backtrace>(dlsym(library, "unw_backtrace"));
  if (backtrace == nullptr) {
    g_state.store(State::kAbsent, std::memory_order_release);
    SetInternal(Internal::kNativeFrames, false,
                "libunwind.so.8 is not installed (Debian: apt-get install libunwind8)");
    return;
  }
  void* warm[4];
  backtrace(warm, 4);  // the first call reads unwind tables and takes a fraction of a millisecond
  g_backtrace.store(backtrace, std::memory_order_release);
  g_state.store(State::kReady, std::memory_order_release);
  SetInternal(Internal::kNativeFrames, true, "libunwind.so.8");
}

}  // namespace

void PrepareNativeFrames() noexcept {
  State expected = State::kNotTried;
  if (g_state.compare_exchange_strong(expected, State::kTrying, std::memory_order_acq_rel)) Open();
}

int CaptureNativeFrames(void** pcs, int capacity) noexcept {
  Backtrace backtrace = g_backtrace.load(std::memory_order_acquire);
  if (backtrace == nullptr) return 0;
  constexpr int kOwnFrames = 8;
  void* raw[kMaxNativeFrames + kOwnFrames];
  const int wanted = capacity < kMaxNativeFrames ? capacity : kMaxNativeFrames;
  const int count = backtrace(raw, wanted + kOwnFrames);
  int first = 0;
  while (first < count && first < kOwnFrames && IsOwnFrame(raw[first])) ++first;
  int kept = 0;
  for (int i = first; i < count && kept < wanted; ++i) {
    if (raw[i] != nullptr) pcs[kept++] = raw[i];
  }
  return kept;
}

}  // namespace vramtrace::stacks
