#include <algorithm>

#include "preload/catalogue/catalogue.h"
#include "preload/catalogue/csv.h"
#include "preload/catalogue/data.h"
#include "preload/catalogue/parse.h"

namespace vramtrace::catalogue {
namespace {

Basis ToBasis(std::string_view text) {
  return text.empty() ? Basis::kUnknown : static_cast<Basis>(text.front());
}

// Tables are never freed: views into them outlive static destructors.
const CsvTable& Rows() {
  static const CsvTable* table = new CsvTable(data::kGpus);
  return *table;
}

void AddSpecifications(std::vector<Gpu>& gpus) {
  static const CsvTable* table = new CsvTable(data::kSpecs);
  for (size_t row = 0; row < table->size(); ++row) {
    auto gpu = std::find_if(gpus.begin(), gpus.end(),
                            [&](const Gpu& candidate) { return candidate.id == table->Field(row, "id"); });
    if (gpu == gpus.end()) continue;
    gpu->bus_width_bits = ToInt(table->Field(row, "bus_bits"));
    gpu->l2_bytes = ToBytes(table->Field(row, "l2_kib"), 1024).value_or(0);
    gpu->clock_mhz = ToInt(table->Field(row, "boost_mhz"));
    // Bandwidth = 2 transfers x memory clock x bus width, as cudaDeviceProp::memoryClockRate is defined.
    if (gpu->bus_width_bits > 0) {
      gpu->memory_clock_mhz = static_cast<int>(gpu->bandwidth_gb_per_s * 4000 / gpu->bus_width_bits);
    }
  }
}

void AddExactTotals(std::vector<Gpu>& gpus) {
  static const CsvTable* table = new CsvTable(data::kExactTotals);
  for (size_t row = 0; row < table->size(); ++row) {
    for (Gpu& gpu : gpus) {
      if (gpu.id != table->Field(row, "gpu_id")) continue;
      gpu.cuda_total_bytes = ToBytes(table->Field(row, "cuda_total_bytes"), 1);
      gpu.cuda_basis = Basis::kMeasured;
    }
  }
}

std::vector<Gpu>* LoadGpus() {
  auto* gpus = new std::vector<Gpu>;
  const CsvTable& rows = Rows();
  for (size_t row = 0; row < rows.size(); ++row) {
    auto field = [&](std::string_view column) { return rows.Field(row, column); };
    ComputeCapability capability = ToCapability(field("cc"));
    Gpu gpu;
    gpu.id = field("id");
    gpu.device_name = field("device_name");
    gpu.architecture = field("arch");
    gpu.compute_major = capability.major;
    gpu.compute_minor = capability.minor;
    gpu.multiprocessors = ToInt(field("sms"));
    gpu.sold_gigabytes = ToInt(field("marketing_gb"));
    gpu.nvml_total_bytes = ToBytes(field("smi_total_mib"), kMebibyte);
    gpu.nvml_basis = ToBasis(field("smi_basis"));
    gpu.cuda_total_bytes = ToBytes(field("cuda_total_mib"), kMebibyte);
    gpu.cuda_basis = ToBasis(field("cuda_basis"));
    gpu.bandwidth_gb_per_s = ToDouble(field("bw_gbps"));
    gpu.bf16_tflops = ToDouble(field("bf16_dense_tflops"));
    gpu.fp32_tflops = ToDouble(field("fp32_tflops"));
    gpu.gpu_link = field("gpu_link_gbps");
    gpu.pcie = field("pcie");
    gpu.power_watts = ToInt(field("tdp_w"));
    gpu.note = field("note");
    gpus->push_back(gpu);
  }
  AddSpecifications(*gpus);
  AddExactTotals(*gpus);
  return gpus;
}

std::vector<MigProfile>* LoadMigProfiles() {
  static const CsvTable* rows = new CsvTable(data::kMig);
  auto* profiles = new std::vector<MigProfile>;
  for (size_t row = 0; row < rows->size(); ++row) {
    profiles->push_back({rows->Field(row, "gpu"), rows->Field(row, "profile"), ToInt(rows->Field(row, "sms")),
                         ToInt(rows->Field(row, "max_instances")),
                         ToBytes(rows->Field(row, "memory_mib"), kMebibyte).value_or(0),
                         ToBasis(rows->Field(row, "basis"))});
  }
  return profiles;
}

std::vector<Price>* LoadPrices() {
  static const CsvTable* rows = new CsvTable(data::kPrices);
  auto* prices = new std::vector<Price>;
  for (size_t row = 0; row < rows->size(); ++row) {
    auto field = [&](std::string_view column) { return rows->Field(row, column); };
    prices->push_back({field("gpu_id"), ToInt(field("memory_gb")), field("currency"),
                       ToDouble(field("per_hour_low")), ToDouble(field("per_hour_high")), field("market"),
                       field("date"), field("source")});
  }
  return prices;
}

}  // namespace

std::span<const Gpu> Gpus() {
  static const std::vector<Gpu>* gpus = LoadGpus();
  return *gpus;
}

std::span<const MigProfile> MigProfiles() {
  static const std::vector<MigProfile>* profiles = LoadMigProfiles();
  return *profiles;
}

std::span<const Price> Prices() {
  static const std::vector<Price>* prices = LoadPrices();
  return *prices;
}

std::string_view BasisText(Basis basis) {
  switch (basis) {
    case Basis::kMeasured:
      return "measured";
    case Basis::kSeen:
      return "seen in published output";
    case Basis::kDerived:
      return "derived";
    case Basis::kKnowledge:
      return "general knowledge";
    case Basis::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace vramtrace::catalogue
