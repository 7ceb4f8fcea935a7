#include "analyzer/gpus/prices.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "preload/catalogue/csv.h"

namespace vramtrace::gpus {
namespace {

constexpr size_t kMaxFileBytes = 16u << 20;
constexpr std::string_view kNeeded[] = {"gpu_id", "memory_gb", "currency", "per_hour_low",
                                        "market", "date",      "source"};

// One data line with its place, for messages.
struct Line {
  const std::string& file;
  size_t number;
  uint64_t offset;
  catalogue::CsvTable fields;

  [[nodiscard]] trace::Error Wrong(std::string_view column, std::string_view expected) const {
    return {file, offset,
            fmt::format("line {}, column {}: '{}' is not {}", number, column, Field(column).substr(0, 60),
                        expected)};
  }
  [[nodiscard]] std::string_view Field(std::string_view column) const { return fields.Field(0, column); }
};

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A price is above 0 and below a million an hour or 100 million a month: more is a slip, and would hide in a
// sum.
std::optional<double> Money(std::string_view text, double limit) {
  const std::optional<double> value = Number(text);
  if (!value || *value <= 0 || *value > limit) return std::nullopt;
  return value;
}

trace::Result<Offer> ParseLine(const Line& line) {
  constexpr double kHourLimit = 1e6;
  constexpr double kMonthLimit = 1e8;
  Offer offer;
  offer.gpu_id = line.Field("gpu_id");
  if (!offer.gpu_id.empty()) {
    const catalogue::Gpu* gpu = catalogue::FindGpu(offer.gpu_id);
    if (gpu == nullptr) return line.Wrong("gpu_id", "a card of the catalogue (vramtrace gpus lists them)");
    offer.gpu_id = gpu->id;
  }
  const std::optional<double> memory = Number(line.Field("memory_gb"));
  if (memory && *memory >= 1 && *memory <= 100'000) {
    offer.memory_gigabytes = static_cast<int>(*memory);
  } else if (offer.gpu_id.empty() || !line.Field("memory_gb").empty()) {
    return line.Wrong("memory_gb", "a number of gigabytes, and gpu_id is empty or it may be left out");
  }
  offer.currency = line.Field("currency");
  if (offer.currency != "CNY" && offer.currency != "USD") return line.Wrong("currency", "CNY or USD");
  const std::optional<double> low = Money(line.Field("per_hour_low"), kHourLimit);
  if (!low) return line.Wrong("per_hour_low", "a price above 0");
  const std::string_view high_text = line.Field("per_hour_high");
  const std::optional<double> high = high_text.empty() ? low : Money(high_text, kHourLimit);
  if (!high || *high < *low) return line.Wrong("per_hour_high", "a price of at least per_hour_low");
  offer.per_hour_low = *low;
  offer.per_hour_high = *high;
  if (const std::string_view month = line.Field("per_month"); !month.empty()) {
    offer.per_month = Money(month, kMonthLimit);
    if (!offer.per_month) return line.Wrong("per_month", "a price above 0");
  }
  offer.market = line.Field("market");
  offer.date = line.Field("date");
  offer.source = line.Field("source");
  if (offer.date.empty()) return line.Wrong("date", "the day or year of the price");
  return offer;
}

}  // namespace

std::vector<const Offer*> PriceTable::For(const catalogue::Gpu& gpu) const {
  std::vector<const Offer*> named;
  std::vector<const Offer*> by_size;
  for (const Offer& offer : offers) {
    if (offer.gpu_id == gpu.id) named.push_back(&offer);
    if (offer.gpu_id.empty() && offer.memory_gigabytes == gpu.sold_gigabytes) by_size.push_back(&offer);
  }
  return named.empty() ? by_size : named;
}

PriceTable BuiltinPrices() {
  PriceTable table{.name = "builtin", .offers = {}};
  for (const catalogue::Price& price : catalogue::Prices()) {
    table.offers.push_back({std::string(price.gpu_id), price.memory_gigabytes, std::string(price.currency),
                            price.per_hour_low, price.per_hour_high, std::nullopt, std::string(price.market),
                            std::string(price.date), std::string(price.source)});
  }
  return table;
}

trace::Result<PriceTable> ParsePrices(std::string_view text, const std::string& file) {
  PriceTable table{.name = file, .offers = {}};
  std::string header;
  size_t number = 0;
  for (uint64_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line(text.substr(at, end - at));
    const uint64_t offset = at;
    at = end + 1;
    ++number;
    if (line.empty() || line == "\r") continue;
    if (header.empty()) {
      header = line;
      const catalogue::CsvTable probe(fmt::format("{}\n{}", header, header));
      for (const std::string_view column : kNeeded) {
        if (probe.Field(0, column).empty()) {
          return trace::Error{file, offset, fmt::format("the header has no column '{}'", column)};
        }
      }
      continue;
    }
    trace::Result<Offer> offer =
        ParseLine({file, number, offset, catalogue::CsvTable(fmt::format("{}\n{}", header, line))});
    if (!offer.ok()) return offer.error();
    table.offers.push_back(std::move(offer.value()));
  }
  if (table.offers.empty()) return trace::Error{file, std::nullopt, "no price in it, expected CSV rows"};
  return table;
}

trace::Result<PriceTable> LoadPrices(const std::string& where) {
  if (where == "builtin") return BuiltinPrices();
  std::ifstream stream(where, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  if (!stream || !stream.read(text.data(), static_cast<std::streamsize>(text.size())).eof()) {
    if (stream) return trace::Error{where, std::nullopt, "too large for a price table (limit 16 MiB)"};
    return trace::Error{where, std::nullopt, "cannot be read; --prices takes a CSV file or builtin"};
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return ParsePrices(text, where);
}

}  // namespace vramtrace::gpus
