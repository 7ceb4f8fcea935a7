// NVRTC compiles on the CPU, so the real one is used where it is installed; without it, every call refuses.
// The functions take at most six integers or pointers and return one, so they are forwarded untyped: there is
// no header of NVRTC among those a build needs.

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>

#include "preload/simulator/core/log.h"
#include "preload/simulator/others/real_library.h"

namespace {

constexpr char kLibrary[] = VRAMTRACE_SIM_SONAME;
#if CUDART_VERSION >= 13000
constexpr char kInstall[] = "NVRTC is not installed: pip install nvidia-cuda-nvrtc";
#else
constexpr char kInstall[] = "NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12";
#endif
constexpr uintptr_t kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR
using Forwarded = uintptr_t (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

template <typename Function = Forwarded>
Function Find(const char* name) {
  static void* const library = vramtrace::simulator::others::OpenReal(kLibrary);
  return library != nullptr ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

}  // namespace

extern "C" {

#define VRAMTRACE_NVRTC(name)                                                                    \
  uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) { \
    static const Forwarded real = Find(#name);                                                   \
    if (real != nullptr) return real(a, b, c, d, e, f);                                          \
    vramtrace_sim_unsupported(kLibrary, #name);                                                  \
    return kInternalError;                                                                       \
  }
VRAMTRACE_NVRTC(nvrtcAddNameExpression)
VRAMTRACE_NVRTC(nvrtcCompileProgram)
VRAMTRACE_NVRTC(nvrtcCreateProgram)
VRAMTRACE_NVRTC(nvrtcDestroyProgram)
VRAMTRACE_NVRTC(nvrtcGetCUBIN)
VRAMTRACE_NVRTC(nvrtcGetCUBINSize)
VRAMTRACE_NVRTC(nvrtcGetLTOIR)
VRAMTRACE_NVRTC(nvrtcGetLTOIRSize)
VRAMTRACE_NVRTC(nvrtcGetLoweredName)
VRAMTRACE_NVRTC(nvrtcGetNumSupportedArchs)
VRAMTRACE_NVRTC(nvrtcGetOptiXIR)
VRAMTRACE_NVRTC(nvrtcGetOptiXIRSize)
VRAMTRACE_NVRTC(nvrtcGetPCHCreateStatus)
VRAMTRACE_NVRTC(nvrtcGetPCHHeapSize)
VRAMTRACE_NVRTC(nvrtcGetPCHHeapSizeRequired)
VRAMTRACE_NVRTC(nvrtcGetPTX)
VRAMTRACE_NVRTC(nvrtcGetPTXSize)
VRAMTRACE_NVRTC(nvrtcGetProgramLog)
VRAMTRACE_NVRTC(nvrtcGetProgramLogSize)
VRAMTRACE_NVRTC(nvrtcGetSupportedArchs)
VRAMTRACE_NVRTC(nvrtcSetFlowCallback)
VRAMTRACE_NVRTC(nvrtcSetPCHHeapSize)

const char* nvrtcGetErrorString(int result) {
  static const auto real = Find<const char* (*)(int)>("nvrtcGetErrorString");
  if (real != nullptr) return real(result);
  return result == 0 ? "NVRTC_SUCCESS" : kInstall;
}

int nvrtcVersion(int* major, int* minor) {
  static const auto real = Find<int (*)(int*, int*)>("nvrtcVersion");
  if (real != nullptr) return real(major, minor);
  if (major == nullptr || minor == nullptr) return static_cast<int>(kInternalError);
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return 0;
}

}  // extern "C"
