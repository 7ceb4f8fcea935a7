#include "preload/recorder/hooks/entry_points.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "preload/recorder/hooks/call_scope.h"
#include "preload/recorder/hooks/declarations.h"
#include "preload/recorder/hooks/real_functions.h"

namespace vramtrace::hooks {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void* const kDefinitions[] = {
#define VRAMTRACE_HOOK(identifier, symbol, family, role) reinterpret_cast<void*>(&identifier),
#include "preload/recorder/hooks/hooked_functions.def"
#undef VRAMTRACE_HOOK
};
#pragma GCC diagnostic pop
static_assert(sizeof kDefinitions / sizeof kDefinitions[0] == kHookCount);

// Addresses of the driver's own functions, found once the driver library is in the process.
std::atomic<void*> g_driver[kHookCount];
std::atomic<bool> g_filled{false};

void FillFrom(void* library) {
  for (size_t i = 0; i < kHookCount; ++i) {
    if (kHooks[i].family != Family::kDriver) continue;
    void* address = dlsym(library, kHooks[i].symbol);
    if (address != nullptr && !IsOwnAddress(address)) g_driver[i].store(address, std::memory_order_relaxed);
  }
  g_filled.store(true, std::memory_order_release);
}

bool Fill() {
  if (g_filled.load(std::memory_order_acquire)) return true;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    (void)dlerror();  // the program asked for something else, and got it
    return false;
  }
  FillFrom(library);
  dlclose(library);
  return true;
}

}  // namespace

void* DefinitionOf(Hook hook) noexcept { return kDefinitions[static_cast<size_t>(hook)]; }

int RowNamed(const char* symbol) noexcept {
  for (size_t i = 0; i < kHookCount; ++i) {
    if (std::strcmp(kHooks[i].symbol, symbol) == 0) return static_cast<int>(i);
  }
  return -1;
}

void* HookedAddress(void* address) noexcept {
  if (address == nullptr || IsOwnAddress(address)) return address;
  const KeepErrno keep;
  if (!Fill()) return address;
  for (size_t i = 0; i < kHookCount; ++i) {
    if (g_driver[i].load(std::memory_order_relaxed) == address) return kDefinitions[i];
  }
  return address;
}

void* HookedRuntimeAddress(const char* name, void* address) noexcept {
  if (IsOwnAddress(address)) return address;
  for (size_t i = 0; i < kHookCount; ++i) {
    if (kHooks[i].family != Family::kRuntime || std::strcmp(kHooks[i].symbol, name) != 0) continue;
    const KeepErrno keep;
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return address;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    const char* const file = slash == nullptr ? info.dli_fname : slash + 1;
    if (std::strncmp(file, "libcudart", 9) != 0) return address;
    return AnswerFor(static_cast<Hook>(i), address) ? kDefinitions[i] : address;
  }
  return address;
}

void* HookedAddressFor(void* address, const void* caller) noexcept {
  void* const hooked = HookedAddress(address);
  if (hooked == address) return address;
  Dl_info driver{};
  Dl_info asking{};
  const bool own =
      dladdr(address, &driver) != 0 && dladdr(caller, &asking) != 0 && driver.dli_fbase == asking.dli_fbase;
  return own ? address : hooked;
}

}  // namespace vramtrace::hooks
