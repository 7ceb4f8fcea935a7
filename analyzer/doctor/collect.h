#pragma once
// Gathers the facts: runs a probe, asks NVML, reads the machine.

#include <functional>
#include <string>

#include "analyzer/doctor/facts.h"

namespace vramtrace::doctor {

enum class ProbeChoice : uint8_t { kAuto, kTorch, kNative, kNone };

struct CollectOptions {
  double seconds = 60;  // for everything
  ProbeChoice probe = ProbeChoice::kAuto;
  std::string python = "python3";
  std::string data;     // a folder; empty: none
  std::string sold_as;  // empty: the card's own name
  bool simulated = false;
  bool has_clock = false;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

[[nodiscard]] Facts Collect(const CollectOptions& options);

// One line of a probe into the facts. Lines that are none are left out: what a library prints on stdout.
void TakeProbeLine(std::string_view line, Facts* facts,
                   const std::function<void(const std::string&)>& progress);

// The parts, for tests.
void AskNvml(Facts* facts, const std::string& library = "libnvidia-ml.so.1");
[[nodiscard]] HostFacts ReadHost();
[[nodiscard]] DiskRates MeasureDisk(const std::string& folder, double seconds);

}  // namespace vramtrace::doctor
