#pragma once
// Libraries whose imports do not reach us: opened with RTLD_DEEPBIND, which looks into the library's own
// dependencies before the preloads, or loaded before we were, where the driver brought us in
// (CUDA_INJECTION64_PATH without LD_PRELOAD).

namespace vramtrace::hooks {

// Points the imports of every loaded library that lead to a hooked function of the CUDA runtime, the driver,
// libc10 or to dlsym at ours: the words that the dynamic linker fills, nothing of the code. Not those of the
// driver itself and of the C library. x86-64 only. Pointers that a program has fetched before are not
// reached.
void PatchImports() noexcept;

}  // namespace vramtrace::hooks
