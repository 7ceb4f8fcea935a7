#pragma once
// Handles and descriptors of cuSPARSE. Opaque to the program: each is ours, with a mark.

#include <cusparse.h>

#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::cusparse {

inline constexpr char kLibrary[] = VRAMTRACE_SIM_SONAME;
// A real handle loads code; no public figure, so nothing is charged.
inline constexpr uint64_t kHandleBytes = 0;

struct State {
  cusparsePointerMode_t pointer_mode = CUSPARSE_POINTER_MODE_HOST;
};
using Handle = LibraryHandle<State, 0x6375535041525345>;
inline Handle* From(cusparseHandle_t handle) { return Handle::From(handle); }

// A sparse or dense matrix or vector.
struct Matrix {
  static constexpr uint64_t kMark = 0x63755370644d6174;
  uint64_t mark = kMark;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stored = 0;  // entries
  cudaDataType type = CUDA_R_32F;
};

[[nodiscard]] inline const Matrix* FromMatrix(const void* pointer) {
  const auto* matrix = static_cast<const Matrix*>(pointer);
  return matrix != nullptr && matrix->mark == Matrix::kMark ? matrix : nullptr;
}

}  // namespace vramtrace::simulator::cusparse
