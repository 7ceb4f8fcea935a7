#include "analyzer/gpus/cost_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/report/table.h"
#include "analyzer/report/units.h"

namespace vramtrace::gpus {
namespace {

using report::Size;
using Align = report::Table::Align;
constexpr size_t kWidth = 118;

std::string Band(double low, double high) {
  return Amount(low) == Amount(high) ? Amount(low) : Amount(low) + "-" + Amount(high);
}

std::string BandText(const Range& range) {
  if (Amount(range.low) == Amount(range.high)) return Amount(range.expected);
  return fmt::format("{} ({}-{})", Amount(range.expected), Amount(range.low), Amount(range.high));
}

std::string CardName(const CardRow& row) {
  return row.cards == 1 ? std::string(row.gpu->id) : fmt::format("{} x {}", row.cards, row.gpu->id);
}

// "RunPod, 2026-03-10; 2 more"
std::string OfferText(const CardRow& row) {
  if (row.offer == nullptr) return "no price known";
  std::string text = fmt::format("{}, {}", row.offer->market, row.offer->date);
  if (row.offer->gpu_id.empty()) text += ", by memory size";
  if (row.converted) text += fmt::format(", from {}", row.offer->currency);
  if (row.offers > 1) text += fmt::format("; {} more", row.offers - 1);
  return text;
}

// The best row of each card, in the table's order.
std::vector<const CardRow*> BestRows(const CardTable& table) {
  std::vector<const CardRow*> rows;
  std::set<std::string_view> seen;
  for (const CardRow& row : table.rows) {
    if (row.fit != Fit::kTooSmall && seen.insert(row.gpu->id).second) rows.push_back(&row);
  }
  return rows;
}

bool WantsTime(const CostOptions& options) { return options.hours > 0 || options.flops > 0; }

std::string Header(const CardTable& table) {
  const CostOptions& options = table.options;
  return fmt::format("Cards that hold it, the cheapest {} first (money in {}; prices: {})\n",
                     WantsTime(options) ? "job" : "hour", options.currency, table.prices.name);
}

std::string RowsText(const CardTable& table, const std::vector<const CardRow*>& rows, size_t lines) {
  const bool time = WantsTime(table.options);
  std::vector<Align> columns = {Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kRight};
  std::vector<std::string> header = {"card", "needs", "of", "verdict", "an hour"};
  if (time) {
    columns.insert(columns.end(), {Align::kRight, Align::kRight});
    header.insert(header.end(), {"hours", "the job"});
  }
  columns.push_back(Align::kLeft);
  header.emplace_back("price from");
  report::Table text(columns);
  text.Add(header);
  for (size_t at = 0; at < std::min(lines, rows.size()); ++at) {
    const CardRow& row = *rows[at];
    std::vector<std::string> cells = {CardName(row), Size(row.used.expected), Size(row.total),
                                      std::string(FitText(row.fit)),
                                      row.offer != nullptr ? Band(row.per_hour_low, row.per_hour_high) : "-"};
    if (time) {
      cells.push_back(row.hours ? BandText(*row.hours) : "unknown");
      cells.push_back(row.cost ? BandText(row.cost->total) : "unknown");
    }
    cells.push_back(OfferText(row));
    text.Add(cells);
  }
  return text.Render(kWidth);
}

// Hour or month, rent or buy, for the first row that has the answer.
std::string AlternativesText(const CardTable& table, const std::vector<const CardRow*>& rows) {
  const CostOptions& options = table.options;
  std::string text;
  const double used = HoursPerMonth(options.hours_per_week);
  if (!rows.empty() && rows.front()->offer != nullptr) {
    const CardRow& row = *rows.front();
    const double hourly = (row.per_hour_low + row.per_hour_high) / 2 / row.cards;
    if (row.month_pays) {
      text += fmt::format("{}: a month at {} {} pays from {} hours a month on; at {} a week it is {}.\n",
                          row.gpu->id, options.currency, Amount(*row.month_price),
                          Amount(row.month_pays->hours), Amount(options.hours_per_week), Amount(used));
    } else {
      text += fmt::format(
          "{}: at {} hours a week, a month pays below {} {} a card (no month's price known; "
          "--month-price).\n",
          row.gpu->id, Amount(options.hours_per_week), options.currency, Amount(hourly * used));
    }
  }
  for (const CardRow* row : rows) {
    if (!row->purchase_price || row->offer == nullptr) continue;
    if (row->buying_pays) {
      text += fmt::format("{}: buying at {} {} pays after {} hours of use, {} weeks at {} hours a week.\n",
                          row->gpu->id, options.currency, Amount(*row->purchase_price),
                          Amount(row->buying_pays->hours), Amount(row->buying_pays->weeks),
                          Amount(options.hours_per_week));
    } else {
      text += fmt::format("{}: buying never pays, its power alone costs more than renting.\n", row->gpu->id);
    }
  }
  return text;
}

std::string UnknownSpeeds(const std::vector<const CardRow*>& rows) {
  std::string names;
  for (const CardRow* row : rows) {
    if (row->why_no_hours.empty()) continue;
    names += names.empty() ? "" : ", ";
    names += row->gpu->id;
  }
  return names.empty() ? "" : fmt::format("Speed unknown (no matrix rate in the catalogue): {}.\n", names);
}

std::string AssumptionsText(const CardTable& table, const std::vector<const CardRow*>& rows) {
  const CostOptions& options = table.options;
  std::string text;
  const bool estimated =
      std::any_of(rows.begin(), rows.end(), [](const CardRow* row) { return row->hours_are_estimated; });
  if (estimated) {
    text +=
        "Hours on other cards are estimates between the compute and the bandwidth bound: expect the band.\n";
  } else if (WantsTime(options)) {
    text += "Hours are taken as the same on every card; --reference GPU scales them.\n";
  }
  if (std::any_of(rows.begin(), rows.end(), [](const CardRow* row) { return row->converted; })) {
    text += fmt::format("Converted at {:g} CNY for one USD (assumed).\n", options.cny_per_usd);
  }
  return text;
}

std::string TooSmallText(const CardTable& table) {
  std::set<std::string_view> fitting;
  for (const CardRow& row : table.rows) {
    if (row.fit != Fit::kTooSmall) fitting.insert(row.gpu->id);
  }
  const CardRow* nearest = nullptr;
  std::set<std::string_view> small;
  for (const CardRow& row : table.rows) {
    if (row.fit != Fit::kTooSmall || fitting.contains(row.gpu->id)) continue;
    small.insert(row.gpu->id);
    if (nearest == nullptr) nearest = &row;
  }
  if (nearest == nullptr) return "";
  return fmt::format("{} too small; the nearest miss is {}, {} short.\n", report::Count(small.size(), "card"),
                     CardName(*nearest), Size(nearest->used.expected - nearest->total));
}

nlohmann::ordered_json Json(const Range& range) {
  return {{"low", range.low}, {"expected", range.expected}, {"high", range.high}};
}

nlohmann::ordered_json OfferJson(const CardRow& row) {
  const Offer& offer = *row.offer;
  nlohmann::ordered_json json = {{"currency", offer.currency},
                                 {"per_hour_low", offer.per_hour_low},
                                 {"per_hour_high", offer.per_hour_high},
                                 {"market", offer.market},
                                 {"date", offer.date},
                                 {"source", offer.source},
                                 {"by_memory_size", offer.gpu_id.empty()},
                                 {"converted", row.converted}};
  if (offer.per_month) json["per_month"] = *offer.per_month;
  return json;
}

nlohmann::ordered_json Json(const CardRow& row) {
  nlohmann::ordered_json json;
  json["gpu"] = row.gpu->id;
  json["cards"] = row.cards;
  if (!row.arrangement.empty()) json["arrangement"] = row.arrangement;
  json["used_bytes"] = {{"low", row.used.low}, {"expected", row.used.expected}, {"high", row.used.high}};
  json["total_bytes"] = row.total;
  json["total_basis"] = catalogue::BasisText(row.total_basis);
  json["verdict"] = FitText(row.fit);
  if (row.offer != nullptr) {
    json["per_hour"] = {{"low", row.per_hour_low}, {"high", row.per_hour_high}};
    json["offer"] = OfferJson(row);
    json["offers"] = row.offers;
  }
  if (row.hours) {
    json["hours"] = Json(*row.hours);
    json["hours_basis"] = row.hours_are_estimated ? "estimated" : "given";
  }
  if (!row.why_no_hours.empty()) json["hours_unknown"] = row.why_no_hours;
  if (row.cost) {
    json["cost"] = {{"rent", Json(row.cost->rent)},
                    {"storage", row.cost->storage},
                    {"transfer", row.cost->transfer},
                    {"total", Json(row.cost->total)}};
  }
  if (row.month_pays) {
    json["month"] = {{"price", *row.month_price}, {"pays_from_hours_a_month", row.month_pays->hours}};
  }
  if (row.purchase_price) {
    json["buying"] = {{"price", *row.purchase_price}};
    json["buying"]["pays_after_hours"] =
        row.buying_pays ? nlohmann::ordered_json(row.buying_pays->hours) : nlohmann::ordered_json(nullptr);
  }
  return json;
}

}  // namespace

std::string Amount(double value) {
  if (value >= 1e6) return fmt::format("{:.3g}", value);
  if (value >= 1000) return report::Grouped(static_cast<uint64_t>(std::llround(value)));
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string CardsText(const CardTable& table, size_t lines) {
  const std::vector<const CardRow*> rows = BestRows(table);
  std::string text = Header(table);
  if (rows.empty()) {
    text += "  none in the catalogue\n";
  } else {
    text += RowsText(table, rows, lines);
    if (rows.size() > lines) text += fmt::format("  ... and {} more\n", rows.size() - lines);
  }
  return text + TooSmallText(table) + AlternativesText(table, rows) + UnknownSpeeds(rows) +
         AssumptionsText(table, rows);
}

nlohmann::ordered_json CardsJson(const CardTable& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const CardRow& row : table.rows) rows.push_back(Json(row));
  return {{"currency", table.options.currency}, {"prices", table.prices.name}, {"rows", rows}};
}

}  // namespace vramtrace::gpus
