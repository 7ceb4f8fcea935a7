#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/cli/gpus_cost_options.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/gpus/prices.h"
#include "analyzer/gpus/select.h"
#include "analyzer/report/units.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

using catalogue::Gpu;
using nlohmann::ordered_json;

// What an hour costs over every market that names this card, by currency.
std::string PriceText(const Gpu& gpu, const gpus::PriceTable& prices) {
  std::map<std::string, std::pair<double, double>> ranges;
  for (const gpus::Offer* offer : prices.For(gpu)) {
    if (offer->gpu_id.empty()) continue;
    const auto [range, is_new] =
        ranges.try_emplace(offer->currency, offer->per_hour_low, offer->per_hour_high);
    if (is_new) continue;
    range->second.first = std::min(range->second.first, offer->per_hour_low);
    range->second.second = std::max(range->second.second, offer->per_hour_high);
  }
  std::string text;
  for (const auto& [currency, range] : ranges) {
    if (!text.empty()) text += ", ";
    text += range.first == range.second
                ? fmt::format("{} {:.2f}", currency, range.first)
                : fmt::format("{} {:.2f}-{:.2f}", currency, range.first, range.second);
  }
  return text.empty() ? "-" : text;
}

std::string CapabilityText(const Gpu& gpu) {
  return fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor);
}

void PrintTable(const std::vector<const Gpu*>& cards, const gpus::PriceTable& prices) {
  fmt::print("{:<16} {:<36} {:<15} {:>4} {:>4} {:>11} {:>1} {:>6}  {}\n", "id", "device name", "architecture",
             "CC", "SMs", "CUDA total", "", "GB/s", "price per hour");
  for (const Gpu* card : cards) {
    const Gpu& gpu = *card;
    const auto totals = catalogue::TotalsOf(gpu);
    fmt::print("{:<16} {:<36} {:<15} {:>4} {:>4} {:>11} {:>1} {:>6.0f}  {}\n", gpu.id, gpu.device_name,
               gpu.architecture, CapabilityText(gpu), gpu.multiprocessors,
               totals ? report::Size(totals->cuda_bytes) : "-",
               totals ? std::string(1, static_cast<char>(totals->cuda_basis)) : "-", gpu.bandwidth_gb_per_s,
               PriceText(gpu, prices));
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

void PrintOne(const Gpu& gpu, const gpus::PriceTable& prices) {
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
  for (const gpus::Offer* offer : prices.For(gpu)) {
    if (offer->gpu_id.empty()) continue;
    Row("price per hour", fmt::format("{} {:g} to {:g}, {}, {} ({})", offer->currency, offer->per_hour_low,
                                      offer->per_hour_high, offer->market, offer->date, offer->source));
  }
  fmt::print("\nTry it: vramtrace dry-run --gpu {} -- python train.py\n", gpu.id);
}

ordered_json ToJson(const Gpu& gpu, const gpus::PriceTable& prices) {
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
  for (const gpus::Offer* offer : prices.For(gpu)) {
    if (offer->gpu_id.empty()) continue;
    row["prices"].push_back({{"currency", offer->currency},
                             {"per_hour_low", offer->per_hour_low},
                             {"per_hour_high", offer->per_hour_high},
                             {"market", offer->market},
                             {"date", offer->date},
                             {"source", offer->source}});
  }
  return row;
}

class GpusCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "gpus"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "List the cards of the catalogue, or show one";
  }
  [[nodiscard]] std::string_view Example() const override { return "vramtrace gpus show rtx4090"; }

  void AddOptions(CLI::App& app) override {
    app.add_option("name", words_, "show NAME: one card, by id or device name; all of them without it")
        ->expected(0, kMostWords);
    app.add_option("--format", format_, "text or json")->check(CLI::IsMember({"text", "json"}));
    app.add_option("--sort", selection_.sort, "What to sort by, the best first")
        ->check(CLI::IsMember(gpus::SortNames()));
    app.add_option("--memory", memory_, "At least this CUDA total, such as 24GB or 40GiB");
    app.add_option("--bandwidth", selection_.least_bandwidth_gb_per_s, "At least this many GB/s");
    app.add_option("--architecture", selection_.architecture, "Ampere, Ada, Hopper, ...");
    app.add_option("--max-price", selection_.most_per_hour, "At most this much an hour, in --currency");
    app.add_option("--currency", selection_.currency, "CNY or USD, for --max-price and --sort")
        ->check(CLI::IsMember({"CNY", "USD"}))
        ->capture_default_str();
    app.add_option("--prices", prices_, "Rental prices: builtin, or a CSV file of the same form");
  }

  [[nodiscard]] int Run() override {
    trace::Result<gpus::PriceTable> prices = gpus::LoadPrices(prices_);
    if (!prices.ok()) return SayCostError(prices.error());
    if (!memory_.empty()) {
      const std::optional<uint64_t> least = launch::ParseSize(memory_);
      if (!least) return Wrong(fmt::format("--memory {}: expected a size such as 24GB", memory_));
      selection_.least_memory_bytes = *least;
    }
    // `gpus show rtx4090`, `gpus rtx4090`, `gpus RTX 4090`
    const bool show = !words_.empty() && words_.front() == "show";
    if (show && words_.size() == 1) return Wrong("gpus show needs the name of a card");
    if (words_.empty()) return List(prices.value());
    return Show(fmt::format("{}", fmt::join(words_.begin() + (show ? 1 : 0), words_.end(), " ")),
                prices.value());
  }

 private:
  static constexpr int kMostWords = 8;

  static int Wrong(const std::string& message) {
    fmt::print(stderr, "vramtrace: {}\n", message);
    return kUsage;
  }

  [[nodiscard]] int List(const gpus::PriceTable& prices) const {
    const std::vector<const Gpu*> cards = gpus::Select(selection_, prices);
    if (format_ == "json") {
      ordered_json all = ordered_json::array();
      for (const Gpu* gpu : cards) all.push_back(ToJson(*gpu, prices));
      fmt::print("{}\n", all.dump(2));
    } else {
      PrintTable(cards, prices);
    }
    return kDone;
  }

  [[nodiscard]] int Show(const std::string& name, const gpus::PriceTable& prices) const {
    const Gpu* gpu = catalogue::FindGpu(name);
    if (gpu == nullptr) return Wrong(catalogue::UnknownGpuMessage(name));
    if (format_ == "json") {
      fmt::print("{}\n", ToJson(*gpu, prices).dump(2));
    } else {
      PrintOne(*gpu, prices);
    }
    return kDone;
  }

  std::vector<std::string> words_;
  std::string format_ = "text";
  std::string memory_;
  std::string prices_ = "builtin";
  gpus::Selection selection_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeGpusCommand() { return std::make_unique<GpusCommand>(); }

}  // namespace vramtrace::cli
