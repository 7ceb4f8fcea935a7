#pragma once
// Commands that ask a card can be shown a simulated one: the command starts itself again with the simulator's
// libraries preloaded, and what it runs inherits them.

#include <string>

namespace vramtrace::launch {

struct SimulatedMachine {
  std::string gpu_id;  // of the catalogue
  int count = 1;
  std::string scenario;  // a file, see preload/simulator/core/scenario.h; empty: none
};

// True when this process runs on the simulator already.
[[nodiscard]] bool OnSimulator();

// On the simulator, with a scenario that gives the cards a clock: then the times of some work mean something.
[[nodiscard]] bool SimulatorHasClock();

// Replaces this process. Returns only when that cannot be done: a sentence.
[[nodiscard]] std::string EnterSimulator(const SimulatedMachine& machine);

}  // namespace vramtrace::launch
