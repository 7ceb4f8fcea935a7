#pragma once
// What the functions of the simulated device answer. Each library translates it to its own codes in one
// place.

namespace vramtrace::simulator {

enum class [[nodiscard]] Status : int{
    kOk = 0,   kInvalidValue, kOutOfMemory, kInvalidDevice, kInvalidHandle, kNotFound, kNotSupported,
    kForked,    // the process was forked after CUDA was initialised: as on a real device, CUDA is unusable
    kInjected,  // VRAMTRACE_SIM_FAIL asked for this call to fail
};

}  // namespace vramtrace::simulator

// Functions shared by the libraries of the simulator: they live in libvramtrace_sim_core.so.
#define VRAMTRACE_SIM_EXPORT __attribute__((visibility("default")))
