#pragma once
// What the hooks know of the process as a whole: the trace being open, and what every event carries.

#include <cstdint>

#include "preload/recorder/record/recorder.h"
#include "preload/recorder/stacks/native_frames.h"
#include "preload/recorder/stacks/python_frames.h"

namespace vramtrace::hooks {

// Opens the trace at the first CUDA event and writes what is known by then. False: nothing can be recorded.
bool OpenTrace() noexcept;

// Facts for the Process packet; kept until the trace opens. Texts are copied.
void LearnPython(const char* version) noexcept;
void LearnTorch(const char* version) noexcept;

// Native frames for an event: always for driver calls; for blocks from VRAMTRACE_NATIVE_BYTES on.
inline constexpr uint64_t kDefaultNativeBytes = 16 << 20;
[[nodiscard]] bool WantsNativeFrames(uint64_t block_bytes) noexcept;

// The calling thread's stack, captured into memory of the hook's own frame.
class StackCapture {
 public:
  explicit StackCapture(bool native) noexcept {
    stack_.python = python_;
    stack_.python_count =
        stacks::CapturePythonFrames(python_, stacks::kMaxPythonFrames, &stack_.python_truncated);
    stack_.native = native_;
    stack_.native_count = native ? stacks::CaptureNativeFrames(native_, stacks::kMaxNativeFrames) : 0;
  }
  StackCapture(const StackCapture&) = delete;
  StackCapture& operator=(const StackCapture&) = delete;

  [[nodiscard]] const record::CapturedStack& get() const noexcept { return stack_; }

 private:
  stacks::PythonFrame python_[stacks::kMaxPythonFrames];
  void* native_[stacks::kMaxNativeFrames];
  record::CapturedStack stack_;
};

}  // namespace vramtrace::hooks
