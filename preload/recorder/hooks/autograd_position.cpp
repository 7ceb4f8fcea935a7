#include "preload/recorder/hooks/autograd_position.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "preload/recorder/hooks/real_functions.h"
#include "preload/recorder/stacks/internals.h"

namespace vramtrace::hooks {
namespace {

using stacks::Internal;

// torch::autograd::Node. `sequence` and `thread` are uint64_t members.
struct NodeLayout {
  const char* versions;
  uint16_t sequence;
  uint16_t thread;
};
constexpr NodeLayout kNodeLayouts[] = {
    {"2.15 and later: c10::intrusive_ptr_target", 16, 40},
    {"before: std::enable_shared_from_this", 24, 48},
};

std::atomic<uint64_t (*)()> g_peek{nullptr};
std::atomic<uint64_t (*)()> g_thread_id{nullptr};
std::atomic<bool (*)()> g_grad_mode{nullptr};
std::atomic<void** (*)()> g_node_slot{nullptr};
std::atomic<const NodeLayout*> g_layout{nullptr};

// Operator names by vtable. Append only.
struct OperatorName {
  std::atomic<const void*> vtable{nullptr};
  std::atomic<const char*> name{nullptr};
};
constexpr size_t kOperatorSlots = 4096;
OperatorName g_operators[kOperatorSlots];

template <typename T>
T Read(const void* base, ptrdiff_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

// The type's name from the vtable's type information (Itanium C++ ABI: the word before the functions points
// at std::type_info, whose second word is the name). Null unless the vtable lies in a loaded library.
const char* TypeName(const void* vtable) {
  Dl_info info{};
  if (dladdr(vtable, &info) == 0) return nullptr;
  const void* type = Read<const void*>(vtable, -static_cast<ptrdiff_t>(sizeof(void*)));
  if (type == nullptr || dladdr(type, &info) == 0) return nullptr;
  const char* name = Read<const char*>(type, sizeof(void*));
  if (name != nullptr && *name == '*') ++name;
  return name != nullptr && dladdr(name, &info) != 0 ? name : nullptr;
}

const char* OperatorOf(const void* node) {
  const void* vtable = Read<const void*>(node, 0);
  size_t slot = static_cast<size_t>((reinterpret_cast<uintptr_t>(vtable) >> 3) * 0x9e3779b97f4a7c15 >> 48);
  for (size_t i = 0; i < 64; ++i, ++slot) {
    OperatorName& entry = g_operators[slot % kOperatorSlots];
    const void* there = entry.vtable.load(std::memory_order_acquire);
    if (there == vtable) return entry.name.load(std::memory_order_relaxed);
    if (there != nullptr) continue;
    const char* name = TypeName(vtable);
    if (name == nullptr) return nullptr;
    entry.name.store(name, std::memory_order_relaxed);
    entry.vtable.store(vtable, std::memory_order_release);
    return name;
  }
  return TypeName(vtable);
}

// get_current_node() of a build whose thread-local is reached through c10::ThreadLocal: it calls a function
// pointer held in a static object,  ff 15 <rel32>,  and loads the node from what that returns.
constexpr std::string_view kNodeLoads[] = {
    {"\x48\x8b\x00", 3},      // mov (%rax),%rax, PyTorch 2.15
    {"\xf3\x0f\x6f\x00", 4},  // movdqu (%rax),%xmm0, PyTorch 2.8 to 2.11: a shared pointer, the node first
    {"\x48\x8b\x10", 3},      // mov (%rax),%rdx, PyTorch 2.6
};

bool LoadsNode(const uint8_t* code) {
  return std::any_of(std::begin(kNodeLoads), std::end(kNodeLoads), [code](std::string_view load) {
    return std::memcmp(code, load.data(), load.size()) == 0;
  });
}

void** (*DecodeNodeSlot(const void* function))() {
#if defined(__x86_64__)
  const auto* code = static_cast<const uint8_t*>(function);
  constexpr int kWindow = 48;
  for (int i = 0; i < kWindow; ++i) {
    if (code[i] != 0xff || code[i + 1] != 0x15 || !LoadsNode(code + i + 6)) continue;
    const int32_t distance = Read<int32_t>(code, i + 2);
    return Read<void** (*)()>(code + i + 6, distance);
  }
#else
  (void)function;
#endif
  return nullptr;
}

void TurnOff(const char* reason) { stacks::SetInternal(Internal::kAutogradPosition, false, reason); }

void* Symbol(const char* library, const char* symbol) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* address = dlsym(handle, symbol);
  dlclose(handle);
  return address;
}

// "AddmmBackward0" in N5torch8autograd9generated14AddmmBackward0E.
bool Matches(const char* type_name, const char* python_name) {
  return type_name != nullptr && std::strstr(type_name, python_name) != nullptr;
}

}  // namespace

void FindAutograd() noexcept {
  g_grad_mode.store(reinterpret_cast<bool (*)()>(Symbol("libc10.so", "_ZN3c108GradMode10is_enabledEv")));
  if (stacks::SwitchedOff(Internal::kAutogradPosition)) return TurnOff("switched off by VRAMTRACE_OFF");
  auto peek = reinterpret_cast<uint64_t (*)()>(Symbol("libtorch_cpu.so", "_ZN2at15sequence_number4peekEv"));
  if (peek == nullptr) return TurnOff("this PyTorch does not export at::sequence_number::peek");
  const void* current = Symbol("libtorch_cpu.so", "_ZN5torch8autograd16get_current_nodeEv");
  if (current == nullptr) return TurnOff("this PyTorch does not export torch::autograd::get_current_node");
  auto slot = DecodeNodeSlot(current);
  if (slot == nullptr || stacks::MadeToFail(Internal::kAutogradPosition)) {
    return TurnOff("torch::autograd::get_current_node is not built as in any known version");
  }
  void** const here = slot();
  if (here == nullptr || *here != nullptr) return TurnOff("a node runs although no backward does");
  g_thread_id.store(reinterpret_cast<uint64_t (*)()>(
      Symbol("libtorch_cpu.so", "_ZN2at14RecordFunction15currentThreadIdEv")));
  g_node_slot.store(slot, std::memory_order_release);
  g_peek.store(peek, std::memory_order_release);
}

bool VerifyNodeLayout(const void* const* nodes, const uint64_t* sequence_numbers,
                      const char* const* operator_names, int count) noexcept {
  if (g_node_slot.load(std::memory_order_acquire) == nullptr) return false;
  auto thread_id = g_thread_id.load(std::memory_order_acquire);
  for (const NodeLayout& layout : kNodeLayouts) {
    bool fits = count > 0;
    for (int i = 0; i < count && fits; ++i) {
      fits = Read<uint64_t>(nodes[i], layout.sequence) == sequence_numbers[i] &&
             (thread_id == nullptr || Read<uint64_t>(nodes[i], layout.thread) == thread_id()) &&
             Matches(OperatorOf(nodes[i]), operator_names[i]);
    }
    if (!fits) continue;
    g_layout.store(&layout, std::memory_order_release);
    stacks::SetInternal(Internal::kAutogradPosition, true, layout.versions);
    return true;
  }
  TurnOff("a node's fields are not where any known version has them");
  return false;
}

record::AutogradPosition ReadAutogradPosition() noexcept {
  record::AutogradPosition position;
  const NodeLayout* layout = g_layout.load(std::memory_order_acquire);
  if (layout == nullptr || !stacks::IsOn(Internal::kAutogradPosition)) return position;
  // The slot's address is the thread's own and stays the same.
  static thread_local void** t_slot __attribute__((tls_model("initial-exec"))) = nullptr;
  if (t_slot == nullptr) t_slot = g_node_slot.load(std::memory_order_relaxed)();
  const void* node = *t_slot;
  if (node == nullptr) {
    position.sequence_number = g_peek.load(std::memory_order_relaxed)();
    return position;
  }
  position.operator_name = OperatorOf(node);
  if (position.operator_name == nullptr) {
    stacks::LoseInternal(Internal::kAutogradPosition, "the running node has no type name");
    return {};
  }
  position.sequence_number = Read<uint64_t>(node, layout->sequence);
  position.node_thread = Read<uint64_t>(node, layout->thread);
  return position;
}

bool GradModeEnabled() noexcept {
  auto enabled = g_grad_mode.load(std::memory_order_relaxed);
  return enabled == nullptr || enabled();
}

}  // namespace vramtrace::hooks
