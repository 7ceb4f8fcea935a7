#include "preload/recorder/hooks/requested_sizes.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "preload/recorder/stacks/internals.h"

namespace vramtrace::hooks {
namespace {

using stacks::Internal;

constexpr const char* kLibrary = "libc10_cuda.so";
constexpr const char* kAllocator = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
constexpr size_t kSlotOfAllocate = 2;
constexpr size_t kBeforeSlots = 2;  // offset to top and type information, in front of the functions
constexpr size_t kMaxSlots = 160;
// No device has 256 TiB: a larger number is no size.
constexpr uint64_t kLargestRequest = uint64_t{1} << 48;

// c10::DataPtr: data, context, deleter and device. What matters is that it is returned in memory, as every
// class with a destructor is, and is never touched here.
struct DataPtr {
  DataPtr(const DataPtr&) = delete;
  DataPtr& operator=(const DataPtr&) = delete;
  ~DataPtr() {}  // NOLINT(modernize-use-equals-default): a trivial one would be returned in registers
  void* words[4];

 private:
  DataPtr() = default;
};
using Allocate = DataPtr (*)(void* self, size_t bytes);

std::atomic<Allocate> g_real{nullptr};
const void* g_table[kBeforeSlots + kMaxSlots];
thread_local uint64_t t_requested __attribute__((tls_model("initial-exec"))) = 0;

// An allocation that fails throws through this frame: it holds nothing that would have to be undone.
DataPtr AllocateAndNote(void* self, size_t bytes) {
  t_requested = bytes;
  return g_real.load(std::memory_order_relaxed)(self, bytes);
}

void TurnOff(const char* reason) { stacks::SetInternal(Internal::kRequestedSizes, false, reason); }

// Does `address` lie in `library`'s code?
bool IsIn(const void* address, const char* library) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, library) != nullptr;
}

// How many words from `words` on may be read: to the end of the relocated data they lie in.
size_t ReadableWords(const void* words) {
  struct Search {
    uintptr_t address;
    uintptr_t end;
  } search{reinterpret_cast<uintptr_t>(words), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || wanted->address < begin ||
              wanted->address >= begin + segment.p_memsz) {
            continue;
          }
          wanted->end = begin + segment.p_memsz;
          return 1;
        }
        return 0;
      },
      &search);
  return search.end == 0 ? 0 : (search.end - search.address) / sizeof(void*);
}

}  // namespace

void WrapAllocator() noexcept {
  if (g_real.load(std::memory_order_acquire) != nullptr) return;
  if (stacks::SwitchedOff(Internal::kRequestedSizes)) return TurnOff("switched off by VRAMTRACE_OFF");
  void* library = dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return TurnOff("this PyTorch has no CUDA (libc10_cuda.so is not loaded)");
  auto* holder = static_cast<std::atomic<void*>*>(dlsym(library, kAllocator));
  dlclose(library);
  if (holder == nullptr) return TurnOff("this PyTorch does not export its caching allocator");
  auto* object = static_cast<const void**>(holder->load(std::memory_order_acquire));
  if (object == nullptr) return TurnOff("PyTorch's caching allocator is not there yet");
  auto* table = static_cast<const void* const*>(*object);
  const void* const* whole = table - kBeforeSlots;
  const size_t words = ReadableWords(whole);
  // The object may belong to a pluggable allocator's library, whose vtable is nothing we know.
  if (!IsIn(table, kLibrary) || words <= kBeforeSlots + kSlotOfAllocate ||
      !IsIn(table[kSlotOfAllocate], kLibrary)) {
    return TurnOff("the caching allocator is not PyTorch's own");
  }
  const size_t copied = words < kBeforeSlots + kMaxSlots ? words : kBeforeSlots + kMaxSlots;
  std::memcpy(g_table, whole, copied * sizeof(void*));
  g_real.store(reinterpret_cast<Allocate>(const_cast<void*>(table[kSlotOfAllocate])),
               std::memory_order_release);
  g_table[kBeforeSlots + kSlotOfAllocate] = reinterpret_cast<const void*>(&AllocateAndNote);
  __atomic_store_n(object, static_cast<const void*>(g_table + kBeforeSlots), __ATOMIC_RELEASE);
  stacks::SetInternal(Internal::kRequestedSizes, true, "c10::Allocator::allocate of libc10_cuda.so");
}

uint64_t TakeRequestedSize(uint64_t block_bytes) noexcept {
  uint64_t requested = t_requested;
  t_requested = 0;
  if (requested == 0 || !stacks::IsOn(Internal::kRequestedSizes)) return 0;
  static const bool broken = stacks::MadeToFail(Internal::kRequestedSizes);
  if (broken) requested = block_bytes + 1;
  if (requested > block_bytes || requested > kLargestRequest) {
    stacks::LoseInternal(Internal::kRequestedSizes, "a request was larger than the block it got");
    return 0;
  }
  return requested;
}

}  // namespace vramtrace::hooks
