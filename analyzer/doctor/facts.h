#pragma once
// What doctor knows before it judges: asked, read or measured, each with a reason where there is none.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/nvml/nvml.h"

namespace vramtrace::doctor {

// A figure, or why there is none.
struct Measured {
  std::optional<double> value;
  std::string why = "not measured";
};

// The rates that a probe measures: VRAMTRACE_RATE(enumerator, key, unit, scale). `key` is the word of the
// probes' lines; a value divided by `scale` has the unit.
enum class Rate : uint8_t {
#define VRAMTRACE_RATE(name, key, unit, scale) name,
#include "analyzer/doctor/rates.def"
#undef VRAMTRACE_RATE
  kCount
};
[[nodiscard]] std::string_view RateKey(Rate rate);
[[nodiscard]] std::optional<Rate> RateByKey(std::string_view key);
[[nodiscard]] std::string RateText(Rate rate, double value);

// As the runtime sees it: what a program gets.
struct CudaCard {
  std::string name;
  std::string uuid;
  uint64_t total = 0;
  uint64_t free = 0;  // with a context of our own
  int multiprocessors = 0;
  int compute_major = 0;
  int compute_minor = 0;
};

// As NVML sees it: the board.
struct BoardFacts {
  bool seen = false;
  std::string why = "NVML was not asked";
  std::string name;
  bool simulated = false;
  nvml::Memory memory;
  bool has_memory = false;
  nvml::Answer<bool> ecc;
  nvml::Answer<bool> mig;
  nvml::Answer<nvml::Virtualization> virtualization;
  nvml::Answer<nvml::PcieLink> link_now;
  nvml::Answer<nvml::PcieLink> link_most;
  nvml::Answer<unsigned> nvlinks;
  nvml::Answer<unsigned> clock_most;
  nvml::Answer<unsigned> celsius;
  nvml::Answer<double> watts_limit;
  nvml::Answer<uint64_t> throttle;
  nvml::Answer<std::vector<nvml::Process>> processes;
};

struct CardFacts {
  CudaCard cuda;
  BoardFacts board;
  std::map<Rate, Measured> rates;
  std::string sold_as;  // what the user was promised; empty: the card's own name

  [[nodiscard]] Measured Get(Rate rate) const;
};

struct NetworkCard {
  std::string name;
  std::string kind;  // Ethernet, InfiniBand
  std::optional<double> gigabits;
  bool up = false;
};

struct DiskRates {
  std::string folder;
  std::string why = "no folder was given: --data FOLDER";
  std::optional<double> sequential;  // bytes a second
  std::optional<double> random;      // bytes a second in 64 KiB pieces
  bool cached = false;               // the page cache could not be kept out
};

struct HostFacts {
  std::optional<uint64_t> memory_total;
  std::optional<uint64_t> memory_free;  // available, or what the container leaves
  std::optional<uint64_t> shared_total;
  std::optional<uint64_t> shared_free;
  std::optional<uint64_t> container_memory;  // limit
  std::optional<uint64_t> processes_limit;
  std::optional<uint64_t> locked_limit;  // bytes that may be pinned with mlock
  double cores = 0;                      // that may be used
  double cores_machine = 0;
  bool container = false;
  std::vector<NetworkCard> network;
  DiskRates disk;
  // Limiters between program and driver that say so: variable or library, and its value.
  std::map<std::string, std::string> limiters;
};

struct Software {
  std::string by;     // torch, or native: who measured
  std::string why;    // where nobody did
  std::string torch;  // 2.15.0
  std::string torch_cuda;
  std::vector<std::string> architectures;  // sm_80, compute_90
  std::string driver;
  std::optional<int> driver_cuda;  // 13020
};

struct Facts {
  std::vector<CardFacts> cards;
  HostFacts host;
  Software software;
  bool simulated = false;
  bool has_clock = false;  // a simulated card whose work takes time
  std::string why_no_nvml;
};

}  // namespace vramtrace::doctor
