#pragma once
// Rental prices: the table that is compiled in (preload/catalogue/data/prices.csv) or a file of the user's in
// the same form. A price is an offer: a range per hour, perhaps a month's price, the market, the day it was
// seen and where. Nothing here goes to the network; prices are as old as their date says.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/trace/result.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::gpus {

// One offer for one card, in its own currency.
struct Offer {
  std::string gpu_id;        // empty: any card that is sold with `memory_gigabytes`
  int memory_gigabytes = 0;  // the number in the shop; 0 where gpu_id decides
  std::string currency;      // CNY or USD
  double per_hour_low = 0;   // of one card
  double per_hour_high = 0;
  std::optional<double> per_month;  // of one card, where the market rents by the month
  std::string market;
  std::string date;
  std::string source;

  [[nodiscard]] double PerHour() const { return (per_hour_low + per_hour_high) / 2; }
};

struct PriceTable {
  std::string name;  // "builtin" or the file
  std::vector<Offer> offers;

  // The offers for a card; those that name it, or where none does, those for its memory size.
  [[nodiscard]] std::vector<const Offer*> For(const catalogue::Gpu& gpu) const;
};

[[nodiscard]] PriceTable BuiltinPrices();

// Reads CSV text with a header row; columns as in data/prices.csv, `per_month` may be there too. The error
// names the line, the column and what was expected.
[[nodiscard]] trace::Result<PriceTable> ParsePrices(std::string_view text, const std::string& file);

// "builtin", or a file's path.
[[nodiscard]] trace::Result<PriceTable> LoadPrices(const std::string& where);

}  // namespace vramtrace::gpus
