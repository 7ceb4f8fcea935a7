#include "analyzer/doctor/text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace vramtrace::doctor {

Summary Count(std::span<const Judged> judged) {
  Summary summary;
  for (const Judged& row : judged) {
    summary.good += row.verdict.status == Status::kGood ? 1 : 0;
    summary.off += row.verdict.status == Status::kOff ? 1 : 0;
    summary.not_checked += row.verdict.status == Status::kNotChecked ? 1 : 0;
  }
  return summary;
}

std::string Text(const Facts& facts, std::span<const Judged> judged) {
  std::string text;
  int card = -2;
  for (const Judged& row : judged) {
    if (row.card != card) {
      card = row.card;
      text += card < 0 ? std::string(facts.cards.empty() ? "Cards and machine\n" : "Machine\n")
                       : fmt::format("GPU {}\n", card);
    }
    const char* mark = row.verdict.status == Status::kGood  ? "ok  "
                       : row.verdict.status == Status::kOff ? "OFF "
                                                            : "-   ";
    const std::string found =
        row.verdict.status == Status::kNotChecked ? "not checked: " + row.verdict.found : row.verdict.found;
    text += fmt::format("  {}{:<22} {}\n", mark, row.check->title, found);
    if (row.verdict.status != Status::kOff) continue;
    text += fmt::format("      likely: {}\n", row.verdict.cause);
    if (!row.verdict.remedy.empty()) text += fmt::format("      {}\n", row.verdict.remedy);
  }
  const Summary summary = Count(judged);
  text += fmt::format("{} good, {} off, {} not checked{}\n", summary.good, summary.off, summary.not_checked,
                      facts.simulated ? " (a simulated machine)" : "");
  return text;
}

nlohmann::ordered_json Json(const Facts& facts, std::span<const Judged> judged) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Judged& row : judged) {
    nlohmann::ordered_json item = {{"key", row.check->key}};
    if (row.card >= 0) item["card"] = row.card;
    item["status"] =
        row.verdict.status == Status::kNotChecked ? "not_checked" : StatusText(row.verdict.status);
    item["found"] = row.verdict.found;
    if (row.verdict.status == Status::kOff) {
      item["cause"] = row.verdict.cause;
      item["remedy"] = row.verdict.remedy;
    }
    rows.push_back(std::move(item));
  }
  nlohmann::ordered_json cards = nlohmann::ordered_json::array();
  for (const CardFacts& card : facts.cards) {
    nlohmann::ordered_json rates = nlohmann::ordered_json::object();
    for (const auto& [rate, measured] : card.rates) {
      if (measured.value && (!facts.simulated || facts.has_clock))
        rates[std::string(RateKey(rate))] = *measured.value;
    }
    cards.push_back({{"name", card.cuda.name},
                     {"total_bytes", card.cuda.total},
                     {"free_bytes", card.cuda.free},
                     {"multiprocessors", card.cuda.multiprocessors},
                     {"rates", std::move(rates)}});
  }
  const Summary summary = Count(judged);
  return {{"simulated", facts.simulated},
          {"measured_by", facts.software.by},
          {"cards", std::move(cards)},
          {"checks", std::move(rows)},
          {"good", summary.good},
          {"off", summary.off},
          {"not_checked", summary.not_checked}};
}

}  // namespace vramtrace::doctor
