#include "analyzer/gpus/select.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace vramtrace::gpus {
namespace {

using catalogue::Gpu;

double Memory(const Gpu& gpu) {
  const auto totals = catalogue::TotalsOf(gpu);
  return totals ? static_cast<double>(totals->cuda_bytes) : 0;
}

struct Key {
  const Gpu& gpu;
  double price;  // 0: unknown
};

// Each order: its name and what is compared, smaller first. Cards that cannot be compared come last.
struct Order {
  const char* name;
  double (*key)(const Key&);
};
constexpr double kLast = std::numeric_limits<double>::max();
const Order kOrders[] = {
    {"catalogue", [](const Key&) { return 0.0; }},
    {"memory", [](const Key& key) { return -Memory(key.gpu); }},
    {"bandwidth", [](const Key& key) { return -key.gpu.bandwidth_gb_per_s; }},
    {"bf16", [](const Key& key) { return -key.gpu.bf16_tflops; }},
    {"fp32", [](const Key& key) { return -key.gpu.fp32_tflops; }},
    {"power", [](const Key& key) { return static_cast<double>(key.gpu.power_watts); }},
    {"price", [](const Key& key) { return key.price > 0 ? key.price : kLast; }},
    {"memory-per-price", [](const Key& key) { return key.price > 0 ? -Memory(key.gpu) / key.price : kLast; }},
};

bool SameText(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

bool Wanted(const Gpu& gpu, double price, const Selection& selection) {
  if (Memory(gpu) < static_cast<double>(selection.least_memory_bytes)) return false;
  if (gpu.bandwidth_gb_per_s < selection.least_bandwidth_gb_per_s) return false;
  if (selection.most_per_hour > 0 && (price <= 0 || price > selection.most_per_hour)) return false;
  return selection.architecture.empty() || SameText(gpu.architecture, selection.architecture);
}

}  // namespace

std::vector<std::string> SortNames() {
  std::vector<std::string> names;
  for (const Order& order : kOrders) names.emplace_back(order.name);
  return names;
}

double CheapestHour(const Gpu& gpu, const PriceTable& prices, std::string_view currency) {
  double cheapest = 0;
  for (const Offer* offer : prices.For(gpu)) {
    if (offer->gpu_id.empty() || offer->currency != currency) continue;
    if (cheapest == 0 || offer->per_hour_low < cheapest) cheapest = offer->per_hour_low;
  }
  return cheapest;
}

std::vector<const Gpu*> Select(const Selection& selection, const PriceTable& prices) {
  std::vector<const Gpu*> cards;
  for (const Gpu& gpu : catalogue::Gpus()) {
    if (Wanted(gpu, CheapestHour(gpu, prices, selection.currency), selection)) cards.push_back(&gpu);
  }
  const Order* order = std::find_if(std::begin(kOrders), std::end(kOrders),
                                    [&](const Order& row) { return selection.sort == row.name; });
  if (order == std::end(kOrders)) return cards;
  const auto key = [&](const Gpu* gpu) {
    return order->key({*gpu, CheapestHour(*gpu, prices, selection.currency)});
  };
  std::stable_sort(cards.begin(), cards.end(),
                   [&](const Gpu* left, const Gpu* right) { return key(left) < key(right); });
  return cards;
}

}  // namespace vramtrace::gpus
