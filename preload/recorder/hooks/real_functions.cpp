#include "preload/recorder/hooks/real_functions.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

namespace vramtrace::hooks {
namespace {

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char _end[];

std::atomic<void*> g_next[kHookCount];
std::atomic<void*> g_asked[kHookCount];  // see AnswerFor

// What a caller's module resolved to. Append only; the first reader that finds its key wins.
struct CallerAnswer {
  std::atomic<const void*> module{nullptr};  // load address; set last
  std::atomic<int> hook{-1};
  std::atomic<void*> real{nullptr};
};
constexpr size_t kMaxCallerAnswers = 256;
CallerAnswer g_answers[kMaxCallerAnswers];
std::atomic<size_t> g_answer_count{0};

void* Refuse(void* address) { return IsOwnAddress(address) ? nullptr : address; }

void* InLoaded(const char* library, const char* symbol) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* address = Refuse(dlsym(handle, symbol));
  dlclose(handle);
  return address;
}

void* InKnownLibraries(const char* symbol, Family family) {
  static constexpr const char* kRuntime[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  switch (family) {
    case Family::kRuntime:
      for (const char* name : kRuntime) {
        if (void* address = InLoaded(name, symbol)) return address;
      }
      return nullptr;
    case Family::kDriver:
      return InLoaded("libcuda.so.1", symbol);
    case Family::kC10:
      return InLoaded("libc10.so", symbol);
    case Family::kLoader:
      break;
  }
  return nullptr;
}

// Where a call site's module is linked to a CUDA runtime: its handle, or nullptr. Append only; a site that
// finds the table full is looked up each time.
struct CallSite {
  std::atomic<const void*> address{nullptr};  // set last
  std::atomic<void*> runtime{nullptr};
};
constexpr size_t kMaxCallSites = 256;
CallSite g_sites[kMaxCallSites];
std::atomic<size_t> g_site_count{0};

struct RuntimeSearch {
  uintptr_t address;
  const char* soname;
};

bool Contains(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

const char* NeededRuntimeName(const dl_phdr_info& object) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  }
  uintptr_t strings = 0;
  for (const auto* entry = dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
  }
  if (strings == 0) return nullptr;
  if (strings < object.dlpi_addr) strings += object.dlpi_addr;  // where the loader leaves it as in the file
  constexpr char kRuntime[] = "libcudart.so.";
  for (const auto* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED) continue;
    const auto* name = reinterpret_cast<const char*>(strings + entry->d_un.d_val);
    if (std::strncmp(name, kRuntime, sizeof kRuntime - 1) == 0) return name;
  }
  return nullptr;
}

// Two CUDA runtimes can be in the global scope at once (the simulated device preloads one of each major): a
// caller's is the one that its module is linked to.
void* NeededRuntime(const void* caller) {
  const size_t count = g_site_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count && i < kMaxCallSites; ++i) {
    if (g_sites[i].address.load(std::memory_order_acquire) == caller) {
      return g_sites[i].runtime.load(std::memory_order_relaxed);
    }
  }
  RuntimeSearch search{reinterpret_cast<uintptr_t>(caller), nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto* wanted = static_cast<RuntimeSearch*>(data);
        if (!Contains(*object, wanted->address)) return 0;
        wanted->soname = NeededRuntimeName(*object);
        return 1;
      },
      &search);
  // Kept open: the module holds it too.
  void* const runtime = search.soname != nullptr ? dlopen(search.soname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  const size_t slot = g_site_count.fetch_add(1, std::memory_order_acq_rel);
  if (slot < kMaxCallSites) {
    g_sites[slot].runtime.store(runtime, std::memory_order_relaxed);
    g_sites[slot].address.store(caller, std::memory_order_release);
  }
  return runtime;
}

void* InNeededRuntime(const char* symbol, Family family, const void* caller) {
  if (family != Family::kRuntime || caller == nullptr) return nullptr;
  void* const runtime = NeededRuntime(caller);
  return runtime != nullptr ? Refuse(dlsym(runtime, symbol)) : nullptr;
}

void* ResolveInScope(const char* symbol, const char* caller_path) {
  if (void* address = Refuse(dlsym(RTLD_NEXT, symbol))) return address;
  if (caller_path == nullptr || caller_path[0] == '\0') return nullptr;
  return InLoaded(caller_path, symbol);
}

}  // namespace

bool IsOwnAddress(const void* address) noexcept { return address >= __ehdr_start && address < _end; }

void* FindReal(const char* symbol, Family family, const void* caller) noexcept {
  if (void* address = InNeededRuntime(symbol, family, caller)) return address;
  Dl_info info{};
  const bool known = caller != nullptr && dladdr(caller, &info) != 0;
  if (void* address = ResolveInScope(symbol, known ? info.dli_fname : nullptr)) return address;
  return InKnownLibraries(symbol, family);
}

bool AnswerFor(Hook hook, void* address) noexcept {
  const auto place = static_cast<size_t>(hook);
  void* next = g_next[place].load(std::memory_order_acquire);
  if (next == nullptr) next = Refuse(dlsym(RTLD_NEXT, RowOf(hook).symbol));
  if (next != nullptr) return next == address;
  void* asked = nullptr;
  return g_asked[place].compare_exchange_strong(asked, address) || asked == address;
}

void* FindReal(Hook hook, const void* caller) noexcept {
  const HookRow& row = RowOf(hook);
  if (void* address = InNeededRuntime(row.symbol, row.family, caller)) return address;
  auto& next = g_next[static_cast<size_t>(hook)];
  if (void* address = next.load(std::memory_order_acquire)) return address;
  // A library that arrives later may put itself behind us: an absent answer is not kept.
  if (void* address = Refuse(dlsym(RTLD_NEXT, row.symbol))) {
    next.store(address, std::memory_order_release);
    return address;
  }
  Dl_info info{};
  const bool known = caller != nullptr && dladdr(caller, &info) != 0;
  const void* module = known ? info.dli_fbase : nullptr;
  const size_t count = g_answer_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count && i < kMaxCallerAnswers; ++i) {
    const CallerAnswer& answer = g_answers[i];
    if (answer.module.load(std::memory_order_acquire) == module &&
        answer.hook.load(std::memory_order_relaxed) == static_cast<int>(hook)) {
      if (void* real = answer.real.load(std::memory_order_relaxed)) return real;
    }
  }
  void* address = ResolveInScope(row.symbol, known ? info.dli_fname : nullptr);
  if (address == nullptr) address = g_asked[static_cast<size_t>(hook)].load(std::memory_order_acquire);
  if (address == nullptr) address = InKnownLibraries(row.symbol, row.family);
  if (row.family == Family::kC10 && address != nullptr) {
    // One libc10 a process, called for every block: no second look.
    next.store(address, std::memory_order_release);
    return address;
  }
  if (address == nullptr || module == nullptr) return address;
  const size_t slot = g_answer_count.fetch_add(1, std::memory_order_acq_rel);
  if (slot < kMaxCallerAnswers) {
    g_answers[slot].hook.store(static_cast<int>(hook), std::memory_order_relaxed);
    g_answers[slot].real.store(address, std::memory_order_relaxed);
    g_answers[slot].module.store(module, std::memory_order_release);
  }
  return address;
}

}  // namespace vramtrace::hooks
