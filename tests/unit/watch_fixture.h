#pragma once
// A run that plays a symptom: a scenario for the simulator's NVML, a trace, and what /proc would say.

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "analyzer/watch/session.h"
#include "tests/support/trace_builder.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::watch {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kMebibyte = 1u << 20;
inline constexpr uint64_t kCardBytes = 24207 * kMebibyte;  // CUDA's total of the default card, rtx4090

// One step of the played program.
struct PlayedStep {
  uint64_t data_ms = 0;
  uint64_t work_ms = 100;
  int blocks = 10;
  uint64_t block_bytes = kMebibyte;
  int64_t batch = 32;
  uint64_t input_bytes = kMebibyte;
  int retries = 0;
  uint64_t allocator_ms = 0;
};

struct Played {
  std::string scenario;
  std::string loader = "workers=4 pinned=1 prefetch=2 batch=32 length=1000";  // empty: no DataLoader
  std::function<PlayedStep(int)> step = [](int) { return PlayedStep(); };
  int steps = 12;
  uint64_t used = kCardBytes / 2;
  Rates host;
  std::optional<double> one_card_step;
  uint32_t world_size = 0;
};

class WatchTest : public testing::FileTest {
 protected:
  void SetUp() override;
  // Nothing of it is told to the rules but what simulator, trace and /proc would tell.
  Evidence Play(const Played& played);
  std::string PlayedTrace(const Played& played);
  void WriteScenario(const std::string& text);
  std::unique_ptr<nvml::Library> OpenNvml(std::string* why);
};

// The simulated card's UUID, as its trace and its NVML have it.
std::string UuidOfCard(int index);

}  // namespace vramtrace::watch
