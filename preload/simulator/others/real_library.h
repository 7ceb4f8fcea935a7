#pragma once
// NVIDIA's own library behind a stand-in of the same soname. Only for compilers (NVRTC), which need no
// device: nothing that computes is ever forwarded to.

namespace vramtrace::simulator::others {

// Looks beside the loaded PyTorch (the NVIDIA wheels' folders), in CUDA_HOME and the system's CUDA folder,
// and in LD_LIBRARY_PATH; opens it by path, because by name the dynamic linker would give the stand-in back.
// nullptr when there is none.
[[nodiscard]] void* OpenReal(const char* soname);

}  // namespace vramtrace::simulator::others
