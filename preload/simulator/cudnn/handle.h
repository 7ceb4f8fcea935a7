#pragma once
// What a cuDNN handle remembers: only the stream.

#include <cudnn.h>

#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::cudnn {

inline constexpr char kLibrary[] = "libcudnn.so.9";
// A real handle allocates a little and loads code; no public figure (README.md, What is modelled).
inline constexpr uint64_t kHandleBytes = 0;

struct State {};
using Handle = LibraryHandle<State, 0x644e4e0068616e64>;

inline Handle* From(cudnnHandle_t handle) { return Handle::From(handle); }

// Bytes of one element, 0 for types narrower than a byte or unknown.
[[nodiscard]] size_t ElementBytes(cudnnDataType_t type);

}  // namespace vramtrace::simulator::cudnn
