#pragma once
// What every hook keeps while it works: how deep it is in other hooks of this thread, and the program's
// errno.

#include <cerrno>

namespace vramtrace::hooks {

// cudaMalloc of a library calls cuMemAlloc of the driver: one event, of the outermost function. Initial-exec
// because the general model may call malloc at a thread's first access.
inline thread_local int t_depth __attribute__((tls_model("initial-exec"))) = 0;

class CallScope {
 public:
  CallScope() noexcept { ++t_depth; }
  ~CallScope() { --t_depth; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  [[nodiscard]] bool outermost() const noexcept { return t_depth == 1; }
};

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

}  // namespace vramtrace::hooks
