#pragma once
// A scenario: what the simulated cards say of themselves beyond the catalogue, so that a tool which reads it
// can be tested. VRAMTRACE_SIM_SCENARIO names a text file:
//
//   # every card
//   utilization = 12
//   throttle = hw_thermal, sw_power
//   [gpu 1]            only this card of the machine
//   other_tenant = 8 GiB
//
// The file is read again whenever it has changed, so that NVML's answers may change while a program runs;
// what makes the card (memory, multiprocessors) is taken once.

#include <cstdint>
#include <optional>
#include <string>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

// X(field, type, what). The field's name is the key. Types: Number, Bytes (as VRAMTRACE_SIM_TOTAL), Text.
#define VRAMTRACE_SIM_SCENARIO(X)                                                                      \
  X(utilization, Number, "percent of the time in which a kernel ran, as NVML says")                    \
  X(memory_utilization, Number, "percent of the time in which memory was read or written, likewise")   \
  X(temperature, Number, "degrees Celsius")                                                            \
  X(power, Number, "watts drawn")                                                                      \
  X(power_limit, Number, "watts enforced")                                                             \
  X(sm_clock, Number, "MHz now; the catalogue's clock is the largest")                                 \
  X(memory_clock, Number, "MHz now")                                                                   \
  X(throttle, Text, "why clocks are down: the names of kThrottleReasons in scenario.cpp, with commas") \
  X(pcie_generation, Number, "of the link now")                                                        \
  X(pcie_width, Number, "lanes of the link now")                                                       \
  X(nvlinks, Number, "active NVLinks of the card")                                                     \
  X(name, Text, "what the card calls itself, in place of the catalogue's name")                        \
  X(multiprocessors, Number, "in place of the catalogue's")                                            \
  X(mig, Text, "a MIG slice, by the profile's name: 1g.10gb")                                          \
  X(vgpu, Number, "1: NVML calls the card virtual")                                                    \
  X(ecc, Number, "1: ECC is on; a card whose total depends on it then has 15/16")                      \
  X(limiter, Bytes, "CUDA's total, as a limiter between program and driver makes it; NVML's stays")    \
  X(other_tenant, Bytes, "held by another process")                                                    \
  X(nvml, Text, "absent, or no_permission: how NVML refuses")                                          \
  X(clock, Number,                                                                                     \
    "work takes time: matrix multiplications and copies advance the events' clock as the catalogue's " \
    "rates say, times this")                                                                           \
  X(bandwidth, Number, "with a clock: memory bandwidth, times this")                                   \
  X(host_link, Number, "with a clock: host to device, times this")

using ScenarioNumber = std::optional<double>;
using ScenarioBytes = std::optional<uint64_t>;
using ScenarioText = std::string;

struct Scenario {
#define X(field, type, what) Scenario##type field;
  VRAMTRACE_SIM_SCENARIO(X)
#undef X
};

// Of the machine's card `physical`. A line that is not understood is said once on stderr and left out.
[[nodiscard]] VRAMTRACE_SIM_EXPORT Scenario ScenarioOf(int physical);

// Scenario::throttle as nvmlClocksEventReasons; 0: none.
[[nodiscard]] VRAMTRACE_SIM_EXPORT uint64_t ThrottleBits(const Scenario& scenario);

}  // namespace vramtrace::simulator
