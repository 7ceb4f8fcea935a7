#pragma once
// Plans: what a program asks of one. Handles are numbers.

#include <cufft.h>

#include <cstdint>

namespace vramtrace::simulator::cufft {

inline constexpr char kLibrary[] = VRAMTRACE_SIM_SONAME;

struct Plan {
  void* stream = nullptr;
  uint64_t work_bytes = 0;
  bool allocates = true;  // the work area is the library's own
  void* own_area = nullptr;
  int device = 0;
};

[[nodiscard]] Plan* Find(cufftHandle handle);

}  // namespace vramtrace::simulator::cufft
