#include "analyzer/cli/gpus_cost_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "analyzer/cli/subcommand.h"

namespace vramtrace::cli {
namespace {

constexpr const char* kGroup = "Money";

trace::Error Wrong(std::string message) { return {"", std::nullopt, std::move(message)}; }

// "rtx4090=16000"
trace::Result<gpus::Purchase> ParsePurchase(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const catalogue::Gpu* gpu = catalogue::FindGpu(name);
  if (equals == std::string::npos) return Wrong(fmt::format("--buy {}: expected GPU=PRICE", text));
  if (gpu == nullptr) return Wrong(catalogue::UnknownGpuMessage(name));
  const std::string_view number = std::string_view(text).substr(equals + 1);
  double price = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), price);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(price) || price <= 0) {
    return Wrong(fmt::format("--buy {}: expected a price above 0", text));
  }
  return gpus::Purchase{std::string(gpu->id), price};
}

}  // namespace

void CostFlags::AddOptions(CLI::App& app) {
  app_ = &app;
  const auto add = [&](const char* name, auto& value, const char* what) {
    return app.add_option(name, value, what)->group(kGroup);
  };
  add("--prices", prices_, "Rental prices: builtin, or a CSV file of the same form");
  add("--currency", options_.currency, "CNY or USD")
      ->check(CLI::IsMember({"CNY", "USD"}))
      ->capture_default_str();
  add("--rate", options_.cny_per_usd, "CNY for one USD, for offers in the other currency")
      ->capture_default_str();
  add("--hours", options_.hours, "How long the job takes, on --reference or on any card");
  add("--reference", reference_, "The card that --hours was measured on: other cards are scaled from it");
  add("--per-week", options_.hours_per_week, "Hours a week that the machine is on")->capture_default_str();
  add("--minimum-hours", options_.minimum_hours, "The shortest term that is billed");
  add("--premium", options_.premium_percent, "Percent more for a reservation");
  add("--storage", options_.storage_gigabytes,
      "GB kept until the job is done, also while the machine is stopped");
  add("--storage-price", options_.storage_per_gigabyte_day, "For a GB and day");
  add("--traffic", options_.transfer_gigabytes, "GB brought back: checkpoints");
  add("--traffic-price", options_.transfer_per_gigabyte, "For a GB");
  add("--upload", options_.upload_gigabytes, "GB sent before the start, while the machine is billed");
  add("--uplink", options_.uplink_megabits, "Megabits per second of your uplink");
  add("--month-price", options_.month_price, "What a card costs by the month, where the table has no price");
  add("--buy", purchases_, "GPU=PRICE: what it costs to buy one; may be repeated");
  add("--resale", options_.resale_percent, "Percent of that price it still brings in afterwards");
  add("--power-price", options_.power_per_kwh, "For a kWh, of a card of your own");
}

bool CostFlags::Used() const {
  const auto all = app_->get_options([](const CLI::Option* option) { return option->get_group() == kGroup; });
  return std::any_of(all.begin(), all.end(), [](const CLI::Option* option) { return option->count() > 0; });
}

trace::Result<gpus::CostOptions> CostFlags::Options() const {
  gpus::CostOptions options = options_;
  if (std::string wrong = gpus::CheckOptions(options); !wrong.empty()) return Wrong(std::move(wrong));
  if (!reference_.empty()) {
    options.reference = catalogue::FindGpu(reference_);
    if (options.reference == nullptr) return Wrong(catalogue::UnknownGpuMessage(reference_));
    if (options.hours == 0) return Wrong("--reference says where --hours was measured; give --hours too");
  }
  for (const std::string& text : purchases_) {
    trace::Result<gpus::Purchase> purchase = ParsePurchase(text);
    if (!purchase.ok()) return purchase.error();
    options.purchases.push_back(purchase.value());
  }
  return options;
}

trace::Result<gpus::PriceTable> CostFlags::Prices() const { return gpus::LoadPrices(prices_); }

int SayCostError(const trace::Error& error) {
  fmt::print(stderr, "vramtrace: {}\n", error.file.empty() ? error.message : error.Sentence());
  return error.file.empty() ? kUsage : kBadInput;
}

}  // namespace vramtrace::cli
