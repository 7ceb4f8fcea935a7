#include "analyzer/gpus/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace vramtrace::gpus {
namespace {

constexpr double kHoursPerWeek = 168;
constexpr double kWeeksPerMonth = 365.25 / 12 / 7;

// What an amount of an offer is in the options' currency.
double Converted(double amount, const Offer& offer, const CostOptions& options) {
  if (offer.currency == options.currency) return amount;
  return options.currency == "CNY" ? amount * options.cny_per_usd : amount / options.cny_per_usd;
}

// Offers in the wanted currency if there are any: a converted price is a guess about another country's
// market.
void ChooseOffer(CardRow& row, const PriceTable& prices, const CostOptions& options) {
  std::vector<const Offer*> offers = prices.For(*row.gpu);
  std::vector<const Offer*> own;
  std::copy_if(offers.begin(), offers.end(), std::back_inserter(own),
               [&](const Offer* offer) { return offer->currency == options.currency; });
  row.converted = own.empty() && !offers.empty();
  if (!own.empty()) offers = own;
  row.offers = offers.size();
  for (const Offer* offer : offers) {
    if (row.offer == nullptr || offer->PerHour() < row.offer->PerHour()) row.offer = offer;
  }
  if (row.offer == nullptr) return;
  const double factor = row.cards * (1 + options.premium_percent / 100);
  row.per_hour_low = Converted(row.offer->per_hour_low, *row.offer, options) * factor;
  row.per_hour_high = Converted(row.offer->per_hour_high, *row.offer, options) * factor;
}

// Time of the computation on this row's cards.
std::optional<Range> ComputeHours(CardRow& row, const CostOptions& options) {
  std::optional<Range> hours;
  if (options.flops > 0) {
    hours = HoursForWork(*row.gpu, options.flops, options.arithmetic, &row.why_no_hours);
    row.hours_are_estimated = true;
  } else if (options.hours > 0 && options.reference != nullptr) {
    const auto ratio = TimeRatio(*row.gpu, *options.reference, options.arithmetic, &row.why_no_hours);
    if (!ratio) return std::nullopt;
    hours = Range{options.hours * ratio->low, options.hours * ratio->expected, options.hours * ratio->high};
    row.hours_are_estimated = row.gpu != options.reference || row.cards > 1;
  } else if (options.hours > 0) {
    return Range{options.hours, options.hours, options.hours};
  }
  if (!hours) return std::nullopt;
  const Range speed_up = SpeedUp(*row.gpu, row.cards);
  return Range{hours->low / speed_up.high, hours->expected / speed_up.expected, hours->high / speed_up.low};
}

double UploadHours(const CostOptions& options) {
  if (options.upload_gigabytes <= 0 || options.uplink_megabits <= 0) return 0;
  return options.upload_gigabytes * 8000 / options.uplink_megabits / 3600;
}

Cost CostOf(const CardRow& row, const Range& hours, const CostOptions& options) {
  const auto billed = [&](double spent) { return std::max(spent, options.minimum_hours); };
  const double middle = (row.per_hour_low + row.per_hour_high) / 2;
  Cost cost;
  cost.rent = {billed(hours.low) * row.per_hour_low, billed(hours.expected) * middle,
               billed(hours.high) * row.per_hour_high};
  // Storage is billed by the calendar, whether the machine runs or not.
  const auto storage = [&](double spent) {
    return options.storage_gigabytes * options.storage_per_gigabyte_day * spent / options.hours_per_week * 7;
  };
  cost.storage = storage(hours.expected);
  cost.transfer = options.transfer_gigabytes * options.transfer_per_gigabyte;
  cost.total = {cost.rent.low + storage(hours.low) + cost.transfer,
                cost.rent.expected + cost.storage + cost.transfer,
                cost.rent.high + storage(hours.high) + cost.transfer};
  return cost;
}

Break BreakAt(double hours, const CostOptions& options) { return {hours, hours / options.hours_per_week}; }

void AddAlternatives(CardRow& row, const CostOptions& options) {
  if (row.offer == nullptr) return;
  const double hourly = (row.per_hour_low + row.per_hour_high) / 2 / row.cards;
  if (row.offer->per_month) {
    row.month_price = Converted(*row.offer->per_month, *row.offer, options);
  } else if (options.month_price > 0) {
    row.month_price = options.month_price;
  }
  if (row.month_price) row.month_pays = BreakAt(*row.month_price / hourly, options);
  for (const Purchase& purchase : options.purchases) {
    if (purchase.gpu_id != row.gpu->id) continue;
    row.purchase_price = purchase.price;
    const double running = row.gpu->power_watts / 1000.0 * options.power_per_kwh;
    if (running >= hourly) continue;
    row.buying_pays =
        BreakAt(purchase.price * (1 - options.resale_percent / 100) / (hourly - running), options);
  }
}

CardRow MakeRow(const catalogue::Gpu& gpu, const catalogue::MemoryTotals& totals, const Need& need,
                const CostOptions& options, const PriceTable& prices) {
  CardRow row;
  row.gpu = &gpu;
  row.cards = need.cards;
  row.arrangement = need.arrangement;
  row.used = need.used;
  if (!need.includes_context) {
    const uint64_t context = catalogue::ContextOf(gpu).bytes;
    for (uint64_t* bytes : {&row.used.low, &row.used.expected, &row.used.high}) {
      *bytes = *bytes > std::numeric_limits<uint64_t>::max() - context ? *bytes : *bytes + context;
    }
  }
  row.total = totals.cuda_bytes;
  row.total_basis = totals.cuda_basis;
  row.fit = row.used.high <= row.total       ? Fit::kFits
            : row.used.expected <= row.total ? Fit::kMayFit
                                             : Fit::kTooSmall;
  ChooseOffer(row, prices, options);
  row.hours = ComputeHours(row, options);
  if (row.hours) {
    const double upload = UploadHours(options);
    row.hours = Range{row.hours->low + upload, row.hours->expected + upload, row.hours->high + upload};
    if (row.offer != nullptr) row.cost = CostOf(row, *row.hours, options);
  }
  AddAlternatives(row, options);
  return row;
}

// Smaller is better, compared from left to right.
std::array<double, 4> Rank(const CardRow& row) {
  if (row.fit == Fit::kTooSmall) {
    const double missing = static_cast<double>(row.used.expected - row.total) * row.cards;
    return {2, missing, static_cast<double>(row.cards), 0};
  }
  // A converted price is another country's market: below every price of the user's own.
  const double known = (row.cost ? 0 : row.offer != nullptr ? 2 : 4) + (row.converted ? 1 : 0);
  const double price = row.cost               ? row.cost->total.expected
                       : row.offer != nullptr ? (row.per_hour_low + row.per_hour_high) / 2
                                              : static_cast<double>(row.total) * row.cards;
  return {row.fit == Fit::kFits ? 0.0 : 1.0, known, price, static_cast<double>(row.cards)};
}

}  // namespace

std::string_view FitText(Fit fit) {
  switch (fit) {
    case Fit::kFits:
      return "fits";
    case Fit::kMayFit:
      return "may fit";
    case Fit::kTooSmall:
      break;
  }
  return "too small";
}

double HoursPerMonth(double hours_per_week) { return hours_per_week * kWeeksPerMonth; }

std::string CheckOptions(const CostOptions& options) {
  if (options.currency != "CNY" && options.currency != "USD") return "--currency takes CNY or USD";
  if (!(options.hours_per_week > 0 && options.hours_per_week <= kHoursPerWeek)) {
    return "--per-week takes hours a week, above 0 and at most 168";
  }
  if (!(options.cny_per_usd > 0)) return "--rate takes CNY for one USD, above 0";
  if (!(options.resale_percent >= 0 && options.resale_percent <= 100)) {
    return "--resale takes a share of the purchase price, 0 to 100 percent";
  }
  const std::pair<const char*, double> amounts[] = {
      {"--hours", options.hours},
      {"--minimum-hours", options.minimum_hours},
      {"--premium", options.premium_percent},
      {"--storage", options.storage_gigabytes},
      {"--storage-price", options.storage_per_gigabyte_day},
      {"--traffic", options.transfer_gigabytes},
      {"--traffic-price", options.transfer_per_gigabyte},
      {"--upload", options.upload_gigabytes},
      {"--uplink", options.uplink_megabits},
      {"--month-price", options.month_price},
      {"--power-price", options.power_per_kwh},
  };
  constexpr double kLimit = 1e12;
  for (const auto& [name, amount] : amounts) {
    if (!(amount >= 0 && amount <= kLimit)) return fmt::format("{} takes a number of at least 0", name);
  }
  if (options.upload_gigabytes > 0 && options.uplink_megabits == 0) {
    return "--upload needs --uplink MEGABITS, the speed it is sent at";
  }
  return "";
}

CardTable RankCards(std::span<const Need> needs, CostOptions options, PriceTable prices) {
  CardTable table;
  table.options = std::move(options);
  table.prices = std::move(prices);
  for (const catalogue::Gpu& gpu : catalogue::Gpus()) {
    const std::optional<catalogue::MemoryTotals> totals = catalogue::TotalsOf(gpu);
    if (!totals) continue;
    for (const Need& need : needs) {
      table.rows.push_back(MakeRow(gpu, *totals, need, table.options, table.prices));
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const CardRow& left, const CardRow& right) { return Rank(left) < Rank(right); });
  return table;
}

}  // namespace vramtrace::gpus
