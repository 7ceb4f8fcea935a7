#pragma once
// What a cuBLAS handle remembers.

#include <cublas_v2.h>

#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::cublas {

inline constexpr char kLibrary[] = VRAMTRACE_SIM_SONAME;
// A real handle allocates a few MiB and loads code; no public figure, so nothing is charged
// (preload/simulator/README.md, What is modelled).
inline constexpr uint64_t kHandleBytes = 0;

struct State {
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
#if CUBLAS_VER_MAJOR >= 13
  cublasEmulationStrategy_t emulation = CUBLAS_EMULATION_STRATEGY_DEFAULT;
  cudaEmulationSpecialValuesSupport special_values = CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT;
  cudaEmulationMantissaControl mantissa_control = CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC;
  int max_mantissa_bits = 0;
  int mantissa_bit_offset = 0;
  int* mantissa_bit_count = nullptr;
#endif
  int sm_count_target = 0;  // 0: the library's own choice
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

using Handle = LibraryHandle<State, 0x63754c4153683131>;

inline Handle* From(cublasHandle_t handle) { return Handle::From(handle); }

// Where a result goes in host pointer mode: the caller reads it at once, so it is written. In device mode it
// is device memory, which reads as zero.
inline bool ResultOnHost(const Handle& handle) {
  return handle.state.pointer_mode == CUBLAS_POINTER_MODE_HOST;
}

}  // namespace vramtrace::simulator::cublas
