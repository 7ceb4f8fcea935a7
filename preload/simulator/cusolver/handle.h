#pragma once
// What a cuSOLVER handle remembers: its stream.

#include <cusolverDn.h>

#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::cusolver {

inline constexpr char kLibrary[] = VRAMTRACE_SIM_SONAME;
// A real handle allocates memory and loads code; no public figure, so nothing is charged.
inline constexpr uint64_t kHandleBytes = 0;

struct State {};
using Handle = LibraryHandle<State, 0x6375534f4c766572>;

inline Handle* From(cusolverDnHandle_t handle) { return Handle::From(handle); }

}  // namespace vramtrace::simulator::cusolver
