#pragma once
// GPUs, MIG slices, context sizes and rental prices: what the product knows about hardware, read from the CSV
// files in data/, which are compiled in. No dependencies; everything returned lives as long as the process.
// A figure carries its basis: where it comes from decides how far it may be trusted.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrace::catalogue {

// How a figure is known. The letters are those of data/gpus.csv.
enum class Basis : char {
  kMeasured = 'M',   // read from CUDA on the card by somebody, and published
  kSeen = 'S',       // seen in published nvidia-smi output
  kDerived = 'D',    // by the rule in README.md, from another figure of the same row
  kKnowledge = 'K',  // general knowledge, not seen again when the table was made
  kUnknown = '-',
};

[[nodiscard]] std::string_view BasisText(Basis basis);

struct Gpu {
  std::string_view id;           // rtx4090: what a user types
  std::string_view device_name;  // NVIDIA GeForce RTX 4090: what the card calls itself
  std::string_view architecture;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  int sold_gigabytes = 0;                    // the number in the shop
  std::optional<uint64_t> nvml_total_bytes;  // nvidia-smi's total
  Basis nvml_basis = Basis::kUnknown;
  std::optional<uint64_t> cuda_total_bytes;  // cudaMemGetInfo's total: what a program can have at most
  Basis cuda_basis = Basis::kUnknown;
  double bandwidth_gb_per_s = 0;  // decimal
  double bf16_tflops = 0;         // dense, FP32 accumulate; 0: no BF16 tensor cores
  double fp32_tflops = 0;
  std::string_view gpu_link;
  std::string_view pcie;
  int power_watts = 0;
  int bus_width_bits = 0;
  uint64_t l2_bytes = 0;
  int clock_mhz = 0;         // boost clock
  int memory_clock_mhz = 0;  // as cudaDeviceProp counts it
  std::string_view note;
};

// What the architecture fixes. Source: the tables "Technical Specifications per Compute Capability" and the
// occupancy section of NVIDIA's CUDA C++ Programming Guide, and cuda_occupancy.h of the toolkit.
struct Limits {
  int compute_major = 0;
  int compute_minor = 0;
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  int threads_per_block = 1024;
  int registers_per_multiprocessor = 65536;
  int registers_per_block = 65536;
  int shared_per_multiprocessor = 0;  // bytes
  int shared_per_block = 49152;       // without opting in
  int shared_per_block_opt_in = 0;
  int shared_reserved_per_block = 0;  // the system's own part of each block's shared memory
  int shared_allocation_unit = 128;
  int register_allocation_unit = 256;  // a warp
  int warp_allocation_granularity = 4;
  int single_to_double_ratio = 64;  // FP32 throughput over FP64
};

// What a process pays for its context before the first allocation.
struct ContextCharge {
  uint64_t bytes = 0;
  Basis basis = Basis::kUnknown;  // kMeasured or kKnowledge (our prior)
  std::string_view what;
  std::string_view source;
};

struct MemoryTotals {
  uint64_t cuda_bytes = 0;
  uint64_t nvml_bytes = 0;
  Basis cuda_basis = Basis::kUnknown;
  Basis nvml_basis = Basis::kUnknown;
};

struct MigProfile {
  std::string_view gpu;  // a30, a100-40, ...: the family, a prefix of Gpu::id or of its memory size
  std::string_view profile;
  int multiprocessors = 0;
  int max_instances = 0;
  uint64_t memory_bytes = 0;
  Basis basis = Basis::kUnknown;
};

struct Price {
  std::string_view gpu_id;  // empty: any card with this much memory
  int memory_gigabytes = 0;
  std::string_view currency;
  double per_hour_low = 0;
  double per_hour_high = 0;
  std::string_view market;
  std::string_view date;
  std::string_view source;
};

[[nodiscard]] std::span<const Gpu> Gpus();
[[nodiscard]] std::span<const MigProfile> MigProfiles();
[[nodiscard]] std::span<const Price> Prices();

// By id or device name, whatever the case, spaces, dashes and a leading "NVIDIA", "GeForce" or "Tesla":
// "rtx4090", "RTX 4090", "NVIDIA GeForce RTX 4090". A name that fits several rows (a100) means the one that
// data/aliases.csv says. nullptr when there is none.
[[nodiscard]] const Gpu* FindGpu(std::string_view name);

// The ids nearest to an unknown name, best first.
[[nodiscard]] std::vector<std::string_view> NearNames(std::string_view name, size_t count = 5);

// One sentence for the user: unknown name and the near ones.
[[nodiscard]] std::string UnknownGpuMessage(std::string_view name);

[[nodiscard]] const Limits& LimitsOf(const Gpu& gpu);
[[nodiscard]] ContextCharge ContextOf(const Gpu& gpu);

// The totals, the missing one derived from the other (README.md, Derived totals). Nothing when neither is
// known; `why` then says so, with the remedy.
[[nodiscard]] std::optional<MemoryTotals> TotalsOf(const Gpu& gpu, std::string* why = nullptr);

}  // namespace vramtrace::catalogue
