#include "analyzer/cli/launch/enter_simulator.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "analyzer/cli/launch/environment.h"
#include "analyzer/cli/launch/installation.h"

namespace vramtrace::launch {

bool OnSimulator() { return dlsym(RTLD_DEFAULT, "vramtrace_simulator_present") != nullptr; }

bool SimulatorHasClock() {
  auto* has_clock = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "vramtrace_sim_has_clock"));
  return has_clock != nullptr && has_clock(0) != 0;
}

std::string EnterSimulator(const SimulatedMachine& machine) {
  const auto libraries = FindLibraryFolder(ThisExecutable());
  if (!libraries.ok()) return libraries.error().Sentence();
  const auto simulator = FindSimulator(libraries.value());
  if (!simulator.ok()) return simulator.error().Sentence();
  Environment environment(environ);
  if (const auto bad = environment.Preload(simulator.value().libraries)) {
    return fmt::format("{}: the loader cannot preload a path with spaces or colons", *bad);
  }
  environment.Set("VRAMTRACE_SIM_GPU", machine.gpu_id);
  environment.Set("VRAMTRACE_SIM_COUNT", std::to_string(machine.count));
  environment.Set("TRITON_LIBCUDA_PATH", simulator.value().folder.string());
  environment.Remove("CUDA_VISIBLE_DEVICES");
  if (!machine.scenario.empty()) {
    std::error_code error;
    const auto file = std::filesystem::canonical(machine.scenario, error);
    if (error) return fmt::format("{}: {}", machine.scenario, error.message());
    environment.Set("VRAMTRACE_SIM_SCENARIO", file.string());
  }
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execve("/proc/self/exe", arguments.data(), environment.Pointers().data());
  return fmt::format("this program cannot be started again: {}", std::strerror(errno));
}

}  // namespace vramtrace::launch
