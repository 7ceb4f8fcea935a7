#include "preload/simulator/core/work_clock.h"

#include <atomic>
#include <cstdio>
#include <deque>
#include <string>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/scenario.h"

namespace vramtrace::simulator {
namespace {

// Payload of one lane in GB/s by generation, after the line code; 90 % of it is what pinned copies reach
// (PCI-SIG's rates: 8, 16, 32, 64 GT/s with 128b/130b from generation 3 on).
double LaneGigabytes(double generation) { return 0.9846 * (1 << (static_cast<int>(generation) - 3)); }

struct Rates {
  double fp32 = 0;  // operations a second
  double tf32 = 0;
  double half = 0;
  double within = 0;  // bytes a second, read and written counted
  double host = 0;
};

struct Clock {
  bool on = false;
  Rates rates;
  std::atomic<uint64_t> worked{0};
};

// Multiprocessors that are missing are missing from the rates too.
void Fill(Clock* clock, const Device& device, const Scenario& scenario) {
  clock->on = scenario.clock.has_value() && *scenario.clock > 0;
  if (!clock->on) return;
  const double share =
      *scenario.clock * device.multiprocessors / static_cast<double>(device.gpu->multiprocessors);
  Rates& rates = clock->rates;
  rates.fp32 = device.gpu->fp32_tflops * 1e12 * share;
  rates.half = device.gpu->bf16_tflops > 0 ? device.gpu->bf16_tflops * 1e12 * share : rates.fp32;
  rates.tf32 = device.gpu->compute_major >= 8 ? rates.half / 2 : rates.fp32;
  rates.within = device.gpu->bandwidth_gb_per_s * 1e9 * *scenario.clock * scenario.bandwidth.value_or(1);
  float generation = 3;
  unsigned width = 16;
  std::sscanf(std::string(device.gpu->pcie).c_str(), "%f x%u", &generation, &width);
  rates.host = LaneGigabytes(scenario.pcie_generation.value_or(generation)) *
               scenario.pcie_width.value_or(width) * 0.9e9 * *scenario.clock * scenario.host_link.value_or(1);
}

Clock* ClockOf(int index) {
  static auto* clocks = [] {
    auto* made = new std::deque<Clock>;
    for (int device = 0; device < DeviceCount(); ++device) {
      Fill(&made->emplace_back(), *DeviceAt(device), ScenarioOf(DeviceAt(device)->physical));
    }
    return made;
  }();
  return index >= 0 && index < static_cast<int>(clocks->size()) ? &(*clocks)[static_cast<size_t>(index)]
                                                                : nullptr;
}

void Work(int device, double amount, double Rates::*rate) {
  Clock* clock = ClockOf(device);
  if (clock == nullptr || !clock->on || clock->rates.*rate <= 0) return;
  clock->worked.fetch_add(static_cast<uint64_t>(amount / (clock->rates.*rate) * 1e9) + 1,
                          std::memory_order_relaxed);
}

}  // namespace

bool HasClock(int device) {
  const Clock* clock = ClockOf(device);
  return clock != nullptr && clock->on;
}

uint64_t WorkedNanoseconds(int device) {
  const Clock* clock = ClockOf(device);
  return clock == nullptr ? 0 : clock->worked.load(std::memory_order_relaxed);
}

void WorkMultiply(int device, Multiply kind, double operations) {
  Work(device, operations,
       kind == Multiply::kHalf   ? &Rates::half
       : kind == Multiply::kTf32 ? &Rates::tf32
                                 : &Rates::fp32);
}

void WorkCopy(int device, CopyPath path, uint64_t bytes) {
  if (path == CopyPath::kWithin) {
    Work(device, 2.0 * static_cast<double>(bytes), &Rates::within);
  } else {
    Work(device, static_cast<double>(bytes), &Rates::host);
  }
}

}  // namespace vramtrace::simulator

extern "C" int vramtrace_sim_has_clock(int device) { return vramtrace::simulator::HasClock(device) ? 1 : 0; }
