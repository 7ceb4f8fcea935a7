#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "analyzer/cli/subcommand.h"
#include "analyzer/report/units.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

using catalogue::Gpu;
using nlohmann::ordered_json;

struct PriceRange {
  double low = 0;
  double high = 0;
};

// What an hour costs over every market that names this card, by currency.
std::map<std::string, PriceRange> PricesOf(const Gpu& gpu) {
  std::map<std::string, PriceRange> ranges;
  for (const catalogue::Price& price : catalogue::Prices()) {
    if (price.gpu_id != gpu.id) continue;
    const auto [range, is_new] =
        ranges.try_emplace(std::string(price.currency), PriceRange{price.per_hour_low, price.per_hour_high});
    if (is_new) continue;
    range->second.low = std::min(range->second.low, price.per_hour_low);
    range->second.high = std::max(range->second.high, price.per_hour_high);
  }
  return ranges;
}

std::string PriceText(const Gpu& gpu) {
  std::string text;
  for (const auto& [currency, range] : PricesOf(gpu)) {
    if (!text.empty()) text += ", ";
    text += range.low == range.high ? fmt::format("{} {:.2f}", currency, range.low)
                                    : fmt::format("{} {:.2f}-{:.2f}", currency, range.low, range.high);
  }
  return text.empty() ? "-" : text;
}

std::string CapabilityText(const Gpu& gpu) {
  return fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor);
}

void PrintTable() {
  fmt::print("{:<16} {:<36} {:<15} {:>4} {:>4} {:>11} {:>1} {:>6}  {}\n", "id", "device name", "architecture",
             "CC", "SMs", "CUDA total", "", "GB/s", "price per hour");
  for (const Gpu& gpu : catalogue::Gpus()) {
    const auto totals = catalogue::TotalsOf(gpu);
    fmt::print("{:<16} {:<36} {:<15} {:>4} {:>4} {:>11} {:>1} {:>6.0f}  {}\n", gpu.id, gpu.device_name,
               gpu.architecture, CapabilityText(gpu), gpu.multiprocessors,
               totals ? report::Size(totals->cuda_bytes) : "-",
               totals ? std::string(1, static_cast<char>(totals->cuda_basis)) : "-", gpu.bandwidth_gb_per_s,
               PriceText(gpu));
  }
  fmt::print(
      "\nCUDA total is what a program can have at most, context included (cudaMemGetInfo). How it is "
      "known:\n");
  using catalogue::Basis;
  for (const Basis basis :
       {Basis::kMeasured, Basis::kSeen, Basis::kDerived, Basis::kKnowledge, Basis::kUnknown}) {
    fmt::print("  {}  {}\n", static_cast<char>(basis), catalogue::BasisText(basis));
  }
}

void Row(std::string_view label, const std::string& value) { fmt::print("  {:<24}{}\n", label, value); }

std::string TotalText(const std::optional<uint64_t>& bytes, catalogue::Basis basis) {
  if (!bytes) return "not known";
  return fmt::format("{} ({} bytes; {})", report::Size(*bytes), *bytes, catalogue::BasisText(basis));
}

void PrintOne(const Gpu& gpu) {
  fmt::print("{}: {}\n", gpu.id, gpu.device_name);
  Row("architecture", fmt::format("{}, compute capability {}, {} SMs", gpu.architecture, CapabilityText(gpu),
                                  gpu.multiprocessors));
  Row("sold as", fmt::format("{} GB", gpu.sold_gigabytes));
  std::string why;
  if (const auto totals = catalogue::TotalsOf(gpu, &why)) {
    Row("CUDA total", TotalText(totals->cuda_bytes, totals->cuda_basis));
    Row("nvidia-smi total", TotalText(totals->nvml_bytes, totals->nvml_basis));
  } else {
    Row("CUDA total", why);
  }
  const catalogue::ContextCharge context = catalogue::ContextOf(gpu);
  Row("context", fmt::format("{} ({}; {})", report::Size(context.bytes), context.what,
                             catalogue::BasisText(context.basis)));
  Row("bandwidth", fmt::format("{:g} GB/s", gpu.bandwidth_gb_per_s));
  Row("FP32", fmt::format("{:g} TFLOPS", gpu.fp32_tflops));
  Row("BF16 dense",
      gpu.bf16_tflops > 0 ? fmt::format("{:g} TFLOPS", gpu.bf16_tflops) : "no tensor cores for it");
  Row("links", fmt::format("GPU {}, PCIe {}", gpu.gpu_link, gpu.pcie));
  Row("power", fmt::format("{} W", gpu.power_watts));
  if (!gpu.note.empty()) Row("note", std::string(gpu.note));
  for (const catalogue::Price& price : catalogue::Prices()) {
    if (price.gpu_id != gpu.id) continue;
    Row("price per hour", fmt::format("{} {:g} to {:g}, {}, {} ({})", price.currency, price.per_hour_low,
                                      price.per_hour_high, price.market, price.date, price.source));
  }
  fmt::print("\nTry it: vramtrace dry-run --gpu {} -- python train.py\n", gpu.id);
}

ordered_json ToJson(const Gpu& gpu) {
  ordered_json row;
  row["id"] = gpu.id;
  row["device_name"] = gpu.device_name;
  row["architecture"] = gpu.architecture;
  row["compute_capability"] = CapabilityText(gpu);
  row["multiprocessors"] = gpu.multiprocessors;
  row["sold_gigabytes"] = gpu.sold_gigabytes;
  const auto total = [&](const char* name, uint64_t bytes, catalogue::Basis basis) {
    row[name] = {{"bytes", bytes}, {"basis", catalogue::BasisText(basis)}};
  };
  if (const auto totals = catalogue::TotalsOf(gpu)) {
    total("cuda_total", totals->cuda_bytes, totals->cuda_basis);
    total("nvml_total", totals->nvml_bytes, totals->nvml_basis);
  } else {
    row["cuda_total"] = nullptr;
    row["nvml_total"] = nullptr;
  }
  const catalogue::ContextCharge context = catalogue::ContextOf(gpu);
  total("context", context.bytes, context.basis);
  row["bandwidth_gb_per_s"] = gpu.bandwidth_gb_per_s;
  row["fp32_tflops"] = gpu.fp32_tflops;
  row["bf16_tflops"] = gpu.bf16_tflops;
  row["gpu_link"] = gpu.gpu_link;
  row["pcie"] = gpu.pcie;
  row["power_watts"] = gpu.power_watts;
  row["note"] = gpu.note;
  row["prices"] = ordered_json::array();
  for (const catalogue::Price& price : catalogue::Prices()) {
    if (price.gpu_id != gpu.id) continue;
    row["prices"].push_back({{"currency", price.currency},
                             {"per_hour_low", price.per_hour_low},
                             {"per_hour_high", price.per_hour_high},
                             {"market", price.market},
                             {"date", price.date},
                             {"source", price.source}});
  }
  return row;
}

class GpusCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "gpus"; }
  [[nodiscard]] std::string_view Summary() const override { return "List the GPUs that can be simulated"; }
  [[nodiscard]] std::string_view Example() const override { return "vramtrace gpus rtx4090"; }

  void AddOptions(CLI::App& app) override {
    app.add_option("name", name_, "One GPU, by id or device name; all of them without it");
    app.add_option("--format", format_, "text or json")->check(CLI::IsMember({"text", "json"}));
  }

  [[nodiscard]] int Run() override {
    const bool json = format_ == "json";
    if (name_.empty()) {
      if (json) {
        ordered_json all = ordered_json::array();
        for (const Gpu& gpu : catalogue::Gpus()) all.push_back(ToJson(gpu));
        fmt::print("{}\n", all.dump(2));
      } else {
        PrintTable();
      }
      return kDone;
    }
    const Gpu* gpu = catalogue::FindGpu(name_);
    if (gpu == nullptr) {
      fmt::print(stderr, "vramtrace: {}\n", catalogue::UnknownGpuMessage(name_));
      return kUsage;
    }
    if (json) {
      fmt::print("{}\n", ToJson(*gpu).dump(2));
    } else {
      PrintOne(*gpu);
    }
    return kDone;
  }

 private:
  std::string name_;
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Subcommand> MakeGpusCommand() { return std::make_unique<GpusCommand>(); }

}  // namespace vramtrace::cli
