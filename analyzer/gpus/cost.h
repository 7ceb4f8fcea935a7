#pragma once
// Which cards hold a job, and what it costs on them. In: the device memory that it needs, with its band, for
// one card or for several arrangements over more; a price table; what is known about time and about the
// user's habits. Out: a row for every card of the catalogue and arrangement, the cheapest that fits first.
// All money is in one currency.
//
// `forecast`, `fit` and `estimate` print these rows with cost_text.h.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/gpus/prices.h"
#include "analyzer/gpus/speed.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::gpus {

// Bytes of one card, low <= expected <= high. A need fits when its upper end fits.
struct Bytes {
  uint64_t low = 0;
  uint64_t expected = 0;
  uint64_t high = 0;
};

// What an arrangement of the job needs of each of its cards.
struct Need {
  int cards = 1;
  std::string arrangement;        // "FSDP over 4"; empty on one card
  Bytes used;                     // of the fullest card
  bool includes_context = false;  // false: the context of each card is added from the catalogue
};

enum class Fit {
  kFits,    // the upper end of the band is within the card's total
  kMayFit,  // the expected figure is, the upper end is not
  kTooSmall,
};
[[nodiscard]] std::string_view FitText(Fit fit);

struct Purchase {
  std::string gpu_id;
  double price = 0;  // of one card, in the table's currency
};

// What the user knows. 0 or empty: not said, and the rows then lack what would follow from it.
struct CostOptions {
  std::string currency = "USD";  // CNY or USD
  double cny_per_usd = 7.2;      // for offers in the other currency; the rate of 2026 [assumed]

  double hours = 0;  // the job on `reference`, or on any card where that is null
  const catalogue::Gpu* reference = nullptr;
  double flops = 0;  // instead of hours: the whole job's floating point operations
  Arithmetic arithmetic = Arithmetic::kBf16;
  double hours_per_week = 168;  // how many hours a week the machine is on
  double minimum_hours = 0;     // the shortest term that is billed

  double premium_percent = 0;    // on the hourly price, for a reservation
  double storage_gigabytes = 0;  // kept until the job is done, also while the machine is stopped
  double storage_per_gigabyte_day = 0;
  double transfer_gigabytes = 0;  // brought back: checkpoints
  double transfer_per_gigabyte = 0;
  double upload_gigabytes = 0;  // sent before the start, while the machine is billed
  double uplink_megabits = 0;   // per second

  double month_price = 0;           // of one card, where the table has none
  std::vector<Purchase> purchases;  // for rent against buy
  double resale_percent = 0;        // what a bought card still brings in
  double power_per_kwh = 0;
};

// The parts of a cost; they add up to `total`.
struct Cost {
  Range rent;  // cards x hours x price, at least the minimum term
  double storage = 0;
  double transfer = 0;
  Range total;
};

struct Break {
  double hours = 0;  // of use of one card
  double weeks = 0;  // at hours_per_week
};

struct CardRow {
  const catalogue::Gpu* gpu = nullptr;
  int cards = 1;
  std::string arrangement;
  Bytes used;  // of one card, context included
  uint64_t total = 0;
  catalogue::Basis total_basis = catalogue::Basis::kUnknown;
  Fit fit = Fit::kTooSmall;

  const Offer* offer = nullptr;  // the cheapest one; nullptr: no price known
  size_t offers = 0;             // how many there are
  bool converted = false;        // the offer was in the other currency
  double per_hour_low = 0;       // of all cards, in the options' currency, premium included
  double per_hour_high = 0;

  std::optional<Range> hours;  // of the machine, upload and all
  std::string why_no_hours;    // where the user gave a time and this card's is not known
  bool hours_are_estimated = false;
  std::optional<Cost> cost;

  std::optional<double> month_price;  // of one card
  std::optional<Break> month_pays;    // hours a month from which a month is cheaper than hours
  std::optional<double> purchase_price;
  std::optional<Break> buying_pays;  // nothing: never, running it costs more than renting
};

struct CardTable {
  CostOptions options;
  PriceTable prices;  // rows point into it: a CardTable is moved, not copied
  std::vector<CardRow> rows;

  CardTable() = default;
  CardTable(CardTable&&) = default;
  CardTable& operator=(CardTable&&) = default;
  CardTable(const CardTable&) = delete;
  CardTable& operator=(const CardTable&) = delete;
};

// Every card of the catalogue for every need: what fits before what may, within that the cheapest job first
// (the cheapest hour where no time is known), cards without a price after those with one. Cards that are too
// small come last, the nearest miss first.
[[nodiscard]] CardTable RankCards(std::span<const Need> needs, CostOptions options, PriceTable prices);

// Hours of a month at so many hours a week.
[[nodiscard]] double HoursPerMonth(double hours_per_week);

// A sentence for options that cannot be right (negative, not finite, a currency nobody asked for); empty when
// good.
[[nodiscard]] std::string CheckOptions(const CostOptions& options);

}  // namespace vramtrace::gpus
