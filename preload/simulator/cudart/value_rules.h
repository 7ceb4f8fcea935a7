#pragma once
// Kernels whose result is known without running them: PyTorch's fills and ranges, its count of non-zeros and
// its reductions of flags. They are recognised by the name they are registered with, whose mangled form holds
// the template arguments and so the layout of the launch arguments; a name that does not match to the letter
// has no rule. Written for ATen's names in PyTorch 2.6 to 2.15.
//
// Small tensors have their values from the interpreter (preload/python/values) as well; these rules also
// serve large ones, and programs without Python.

#include <cstdint>

namespace vramtrace::simulator::runtime {

enum class RuleKind : uint8_t { kNone, kFill, kRange, kCountNonZero, kAllFlags, kAnyFlags };

struct Rule {
  RuleKind kind = RuleKind::kNone;
  uint8_t width = 0;        // bytes of an element
  uint8_t count_width = 4;  // bytes of the launch argument that says how many
  bool floating = false;    // of a range
};

// For tests: what a registered name stands for.
[[nodiscard]] Rule RuleFor(const char* name);

// After a launch; `arguments` as cudaLaunchKernel gets them.
void ApplyValueRule(const void* kernel, void** arguments);

}  // namespace vramtrace::simulator::runtime
