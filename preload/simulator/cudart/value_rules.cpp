#include "preload/simulator/cudart/value_rules.h"

#include <atomic>
#include <cstring>
#include <string_view>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/kernels.h"
#include "preload/simulator/core/values.h"

namespace vramtrace::simulator::runtime {
namespace {

constexpr uint64_t kMostBytes = 16u << 20;  // larger ranges and fills are left as unknown zeros
constexpr uint64_t kMostZeros = 64u << 10;  // zeros are read where nothing is stored, too

// Bytes of a template argument by its mangled name, at the beginning of `text`; 0 when it is none of these.
uint8_t WidthOf(std::string_view text) {
  struct Type {
    std::string_view name;
    uint8_t width;
  };
  static constexpr Type kTypes[] = {
      {"b", 1},
      {"a", 1},
      {"h", 1},
      {"s", 2},
      {"t", 2},
      {"i", 4},
      {"j", 4},
      {"f", 4},
      {"l", 8},
      {"m", 8},
      {"x", 8},
      {"y", 8},
      {"d", 8},
      {"N3c108BFloat16E", 2},
      {"N3c104HalfE", 2},
      {"N3c107complexIfEE", 8},
      {"N3c107complexIdEE", 16},
  };
  for (const Type& type : kTypes) {
    if (text.starts_with(type.name) && text.substr(type.name.size()).starts_with("E")) return type.width;
  }
  return 0;
}

// What follows `key` in `name`; empty when it is not there.
std::string_view After(std::string_view name, std::string_view key) {
  const size_t at = name.find(key);
  return at == std::string_view::npos ? std::string_view() : name.substr(at + key.size());
}

// vectorized_elementwise_kernel<n, FillFunctor<T>, array<char*, 1>>(int count, FillFunctor<T>, array)
Rule FillRule(std::string_view name) {
  if (!name.starts_with("_ZN2at6native29vectorized_elementwise_kernelILi") || !name.ends_with("EEviT0_T1_"))
    return {};
  const std::string_view type = After(name, "11FillFunctorI");
  const bool one_pointer = name.find("arrayIPcLm1EE") != std::string_view::npos ||
                           name.find("ArrayIPcLi1EE") != std::string_view::npos;
  const uint8_t width = WidthOf(type);
  return width != 0 && one_pointer ? Rule{RuleKind::kFill, width} : Rule{};
}

// elementwise_kernel_with_index<I, lambda of arange>(I count, lambda{start, step}, T* result). Which type the
// lambda is for is the number of the case in AT_DISPATCH_ALL_TYPES: Byte, Char, Int, Long, Short, Double,
// Float.
Rule RangeRule(std::string_view name) {
  const std::string_view rest = After(name, "elementwise_kernel_with_indexI");
  if (rest.empty() || rest.find("arange_cuda_out") == std::string_view::npos) return {};
  const uint8_t index = rest[0] == 'i' ? 4 : rest[0] == 'l' ? 8 : 0;
  const size_t lambda = rest.rfind("clEvENKUlvE");
  if (index == 0 || lambda == std::string_view::npos) return {};
  const std::string_view number = rest.substr(lambda + std::string_view("clEvENKUlvE").size());
  if (number.starts_with("1_")) return {RuleKind::kRange, 4, index, false};
  if (number.starts_with("2_")) return {RuleKind::kRange, 8, index, false};
  if (number.starts_with("4_")) return {RuleKind::kRange, 8, index, true};
  if (number.starts_with("5_")) return {RuleKind::kRange, 4, index, true};
  return {};
}

// cub's reduction of transform_iterator<NonZeroOp<T>, T const*>: its launch arguments begin with the pointer,
// the place of the result, and how many.
Rule CountRule(std::string_view name) {
  const bool whole = name.find("28DeviceReduceSingleTileKernelI") != std::string_view::npos;
  const bool part = name.find("18DeviceReduceKernelI") != std::string_view::npos;
  const std::string_view type = After(name, "NonZeroOpI");
  const uint8_t width = WidthOf(type);
  if ((!whole && !part) || width == 0) return {};
  const std::string_view offset = After(type, "11use_defaultE");
  if (offset.empty()) return {};
  // DeviceReduceKernel's third template argument is the type of the number, behind the iterator's
  // substitutions.
  const bool wide = part && offset.find("EEyS") != std::string_view::npos;
  return {RuleKind::kCountNonZero, width, static_cast<uint8_t>(wide ? 8 : 4)};
}

Rule FlagsRule(std::string_view name) {
  if (!name.starts_with("_ZN2at6native13reduce_kernelI")) return {};
  if (name.find("15and_kernel_cuda") != std::string_view::npos) return {RuleKind::kAllFlags, 1};
  if (name.find("14or_kernel_cuda") != std::string_view::npos) return {RuleKind::kAnyFlags, 1};
  return {};
}

// Kernel -> rule, without a lock: a launch must stay cheap. A kernel that finds no place is looked up each
// time.
class Rules {
 public:
  Rule Find(const void* kernel) {
    const auto key = reinterpret_cast<uintptr_t>(kernel);
    size_t at = (key >> 4) * 0x9e3779b97f4a7c15u >> (64 - kBits);
    for (int probe = 0; probe < kMostProbes; ++probe, at = (at + 1) % kPlaces) {
      uintptr_t found = keys_[at].load(std::memory_order_acquire);
      if (found == key) return Unpack(rules_[at].load(std::memory_order_acquire), kernel);
      if (found != 0) continue;
      const Rule rule = RuleFor(KernelName(kernel));
      if (keys_[at].compare_exchange_strong(found, key))
        rules_[at].store(Pack(rule), std::memory_order_release);
      return rule;
    }
    return RuleFor(KernelName(kernel));
  }

 private:
  static constexpr int kBits = 16;
  static constexpr size_t kPlaces = size_t{1} << kBits;
  static constexpr int kMostProbes = 16;
  static constexpr uint32_t kThere = 0x80000000;  // 0 while another thread has the key but not yet its rule

  static uint32_t Pack(const Rule& rule) {
    return kThere | static_cast<uint32_t>(rule.kind) << 24 | static_cast<uint32_t>(rule.width) << 16 |
           static_cast<uint32_t>(rule.count_width) << 8 | (rule.floating ? 1u : 0u);
  }
  static Rule Unpack(uint32_t packed, const void* kernel) {
    if ((packed & kThere) == 0) return RuleFor(KernelName(kernel));
    return {static_cast<RuleKind>(packed >> 24 & 0x7f), static_cast<uint8_t>(packed >> 16),
            static_cast<uint8_t>(packed >> 8), (packed & 1) != 0};
  }

  std::atomic<uintptr_t> keys_[kPlaces] = {};
  std::atomic<uint32_t> rules_[kPlaces] = {};
};

Rules& TheRules() {
  static auto* rules = new Rules;
  return *rules;
}

template <typename Value>
Value Argument(void* const* arguments, int i) {
  Value value;
  std::memcpy(&value, arguments[i], sizeof value);
  return value;
}

uint64_t CountArgument(void* const* arguments, int i, const Rule& rule) {
  return rule.count_width == 8 ? Argument<uint64_t>(arguments, i) : Argument<uint32_t>(arguments, i);
}

void ApplyFill(const Rule& rule, void* const* arguments) {
  const uint64_t count = Argument<uint32_t>(arguments, 0);
  auto* destination = Argument<void*>(arguments, 2);
  if (count == 0) return;
  static constexpr unsigned char kZero[16] = {};
  const bool zero = std::memcmp(arguments[1], kZero, rule.width) == 0;
  if (count * rule.width > (zero ? kMostZeros : kMostBytes)) return Clear(destination, count * rule.width);
  std::vector<unsigned char> values(count * rule.width);
  for (uint64_t i = 0; i < count; ++i) std::memcpy(values.data() + i * rule.width, arguments[1], rule.width);
  (void)StoreIfRoom(destination, values.data(), values.size());
}

template <typename Value>
void StoreRange(uint64_t count, const void* functor, void* destination) {
  Value start;
  Value step;
  std::memcpy(&start, functor, sizeof start);
  std::memcpy(&step, static_cast<const char*>(functor) + sizeof start, sizeof step);
  std::vector<Value> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<Value>(start + static_cast<Value>(i) * step);
  (void)StoreIfRoom(destination, values.data(), count * sizeof(Value));
}

void ApplyRange(const Rule& rule, void* const* arguments) {
  const uint64_t count = CountArgument(arguments, 0, rule);
  auto* destination = Argument<void*>(arguments, 2);
  if (count == 0 || count * rule.width > kMostBytes) return;
  if (rule.floating) {
    rule.width == 4 ? StoreRange<float>(count, arguments[1], destination)
                    : StoreRange<double>(count, arguments[1], destination);
    return;
  }
  if (rule.width == 8) {
    StoreRange<int64_t>(count, arguments[1], destination);
    return;
  }
  // int's lambda counts in int64.
  int64_t start = Argument<int64_t>(arguments, 1);
  int64_t step = 0;
  std::memcpy(&step, static_cast<const char*>(arguments[1]) + sizeof start, sizeof step);
  std::vector<int32_t> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<int32_t>(start + static_cast<int64_t>(i) * step);
  }
  (void)StoreIfRoom(destination, values.data(), count * sizeof(int32_t));
}

void ApplyCount(const Rule& rule, void* const* arguments) {
  const auto address = Argument<uint64_t>(arguments, 0);
  const uint64_t count = CountArgument(arguments, 2, rule);
  const uint64_t bytes = count * rule.width;
  if (bytes > kMostBytes || KnowledgeOf(address, bytes) != Knowledge::kKnown) {
    ExpectCount(UnknownCount(count), false);
    return;
  }
  std::vector<unsigned char> values(bytes);
  if (Peek(values.data(), reinterpret_cast<void*>(address), bytes) != Status::kOk) return;
  uint64_t found = 0;
  static constexpr unsigned char kZero[16] = {};
  for (uint64_t i = 0; i < count; ++i) {
    found += std::memcmp(values.data() + i * rule.width, kZero, rule.width) != 0 ? 1 : 0;
  }
  ExpectCount(found, true);
}

}  // namespace

Rule RuleFor(const char* name) {
  for (auto make : {FillRule, RangeRule, CountRule, FlagsRule}) {
    if (Rule rule = make(name); rule.kind != RuleKind::kNone) return rule;
  }
  return {};
}

void ApplyValueRule(const void* kernel, void** arguments) {
  const Rule rule = TheRules().Find(kernel);
  if (rule.kind == RuleKind::kNone || arguments == nullptr) return;
  switch (rule.kind) {
    case RuleKind::kFill:
      return ApplyFill(rule, arguments);
    case RuleKind::kRange:
      return ApplyRange(rule, arguments);
    case RuleKind::kCountNonZero:
      return ApplyCount(rule, arguments);
    case RuleKind::kAllFlags:
      return ExpectFlag(true);
    case RuleKind::kAnyFlags:
      return ExpectFlag(false);
    case RuleKind::kNone:
      return;
  }
}

}  // namespace vramtrace::simulator::runtime
