#include <algorithm>

#include "preload/catalogue/catalogue.h"
#include "preload/catalogue/csv.h"
#include "preload/catalogue/data.h"
#include "preload/catalogue/parse.h"

namespace vramtrace::catalogue {
namespace {

const std::vector<Limits>& AllLimits() {
  static const auto* limits = [] {
    auto* all = new std::vector<Limits>;
    CsvTable rows(data::kLimits);
    for (size_t row = 0; row < rows.size(); ++row) {
      ComputeCapability capability = ToCapability(rows.Field(row, "cc"));
      Limits entry;
      entry.compute_major = capability.major;
      entry.compute_minor = capability.minor;
      entry.threads_per_multiprocessor = ToInt(rows.Field(row, "threads_per_sm"));
      entry.blocks_per_multiprocessor = ToInt(rows.Field(row, "blocks_per_sm"));
      entry.shared_per_multiprocessor = ToInt(rows.Field(row, "shared_per_sm"));
      entry.shared_per_block_opt_in = ToInt(rows.Field(row, "shared_opt_in"));
      entry.shared_reserved_per_block = ToInt(rows.Field(row, "shared_reserved"));
      entry.shared_allocation_unit = ToInt(rows.Field(row, "shared_unit"));
      entry.single_to_double_ratio = ToInt(rows.Field(row, "fp32_to_fp64"));
      all->push_back(entry);
    }
    return all;
  }();
  return *limits;
}

// The newest row of contexts.csv that is not newer than the card: same compute capability if there is one.
struct ContextRow {
  int distance = 1000;
  ContextCharge charge;
};

void Consider(const Gpu& gpu, const CsvTable& rows, size_t row, ContextRow& measured, ContextRow& prior) {
  std::string_view what = rows.Field(row, "what");
  bool is_prior = what.starts_with("prior");
  if (!is_prior && !what.starts_with("context")) return;
  if (rows.Field(row, "loading") != "lazy") return;  // CUDA's default since 11.7
  ComputeCapability capability = ToCapability(rows.Field(row, "compute_capability"));
  int distance = gpu.compute_major * 10 + gpu.compute_minor - capability.major * 10 - capability.minor;
  ContextRow& best = is_prior ? prior : measured;
  // Cards older than every row take the oldest one.
  int rank = distance >= 0 ? distance : 500 - distance;
  if (rank >= best.distance) return;
  best.distance = rank;
  best.charge = {ToBytes(rows.Field(row, "bytes"), 1).value_or(0),
                 is_prior ? Basis::kKnowledge : Basis::kMeasured, what, rows.Field(row, "source")};
}

// The driver's own reserve where it was not measured: README.md, Derived totals.
uint64_t DriverReserve(uint64_t nvml_total) {
  constexpr uint64_t kLeast = 240 * kMebibyte;
  bool large = nvml_total >= 72000 * kMebibyte;
  return std::max(nvml_total * (large ? 5 : 15) / 1000, kLeast);
}

}  // namespace

const Limits& LimitsOf(const Gpu& gpu) {
  const Limits* best = &AllLimits().front();
  for (const Limits& entry : AllLimits()) {
    if (entry.compute_major * 10 + entry.compute_minor <= gpu.compute_major * 10 + gpu.compute_minor) {
      best = &entry;
    }
  }
  return *best;
}

ContextCharge ContextOf(const Gpu& gpu) {
  static const CsvTable* rows = new CsvTable(data::kContexts);
  ContextRow measured;
  ContextRow prior;
  for (size_t row = 0; row < rows->size(); ++row) Consider(gpu, *rows, row, measured, prior);
  return measured.distance == 0 ? measured.charge : prior.charge;
}

std::optional<MemoryTotals> TotalsOf(const Gpu& gpu, std::string* why) {
  MemoryTotals totals{gpu.cuda_total_bytes.value_or(0), gpu.nvml_total_bytes.value_or(0), gpu.cuda_basis,
                      gpu.nvml_basis};
  if (!gpu.cuda_total_bytes && !gpu.nvml_total_bytes) {
    if (why != nullptr) {
      *why = "nobody has published what " + std::string(gpu.device_name) +
             " reports as its memory; give it with --total BYTES (VRAMTRACE_SIM_TOTAL)";
    }
    return std::nullopt;
  }
  if (!gpu.cuda_total_bytes) {
    totals.cuda_bytes = totals.nvml_bytes - DriverReserve(totals.nvml_bytes);
    totals.cuda_basis = Basis::kDerived;
  }
  if (!gpu.nvml_total_bytes) {
    totals.nvml_bytes = totals.cuda_bytes + DriverReserve(totals.cuda_bytes);
    totals.nvml_basis = Basis::kDerived;
  }
  return totals;
}

}  // namespace vramtrace::catalogue
