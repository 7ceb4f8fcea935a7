#include "analyzer/doctor/checks.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace vramtrace::doctor {
namespace {

constexpr auto kChecks = std::to_array<Check>({
#define VRAMTRACE_CHECK(key, title, scope, what, function) {key, title, Scope::scope, what, &(function)},
#include "analyzer/doctor/checks.def"
#undef VRAMTRACE_CHECK
});

std::string WithoutSlice(const std::string& name) { return name.substr(0, name.find(" MIG ")); }

double Distance(const catalogue::Gpu& gpu, const CardFacts& card) {
  const auto totals = catalogue::TotalsOf(gpu);
  if (!totals) return 1e30;
  // The board's total, where NVML tells it: a slice or a limit makes CUDA's small.
  const bool board = card.board.has_memory && card.board.memory.total > 0;
  const double known = static_cast<double>(board ? totals->nvml_bytes : totals->cuda_bytes);
  const double seen = static_cast<double>(board ? card.board.memory.total : card.cuda.total);
  return std::fabs(known - seen);
}

}  // namespace

std::span<const Check> Checks() { return kChecks; }

std::string_view StatusText(Status status) {
  constexpr std::string_view kTexts[] = {"good", "off", "not checked"};
  return kTexts[static_cast<size_t>(status)];
}

std::vector<Judged> JudgeAll(const Facts& facts) {
  std::vector<Judged> all;
  for (size_t index = 0; index < facts.cards.size(); ++index) {
    for (const Check& check : Checks()) {
      if (check.scope != Scope::kCard) continue;
      all.push_back({&check, static_cast<int>(index), check.judge(facts, &facts.cards[index])});
    }
  }
  for (const Check& check : Checks()) {
    if (check.scope == Scope::kCard && facts.cards.empty()) {
      all.push_back(
          {&check, -1, NotChecked(facts.software.why.empty() ? "no card was found" : facts.software.why)});
    }
    if (check.scope == Scope::kMachine) all.push_back({&check, -1, check.judge(facts, nullptr)});
  }
  return all;
}

Verdict Good(std::string found) { return {Status::kGood, std::move(found), "", ""}; }
Verdict NotChecked(std::string why) { return {Status::kNotChecked, std::move(why), "", ""}; }
Verdict Off(std::string found, std::string cause, std::string remedy) {
  return {Status::kOff, std::move(found), std::move(cause), std::move(remedy)};
}

// Names are shared by cards of different memory (RTX 4090 of 24 and 48 GB, A100 of 40 and 80).
const catalogue::Gpu* Expected(const CardFacts& card) {
  if (!card.sold_as.empty()) return catalogue::FindGpu(card.sold_as);
  const std::string name = WithoutSlice(card.board.name.empty() ? card.cuda.name : card.board.name);
  const catalogue::Gpu* best = nullptr;
  for (const catalogue::Gpu& gpu : catalogue::Gpus()) {
    if (gpu.device_name.substr(0, gpu.device_name.find(" (")) != name) continue;
    if (best == nullptr || Distance(gpu, card) < Distance(*best, card)) best = &gpu;
  }
  return best != nullptr ? best : catalogue::FindGpu(name);
}

std::string Partition(const Facts& facts, const CardFacts& card) {
  if (card.board.mig.Or(false) || card.cuda.name.find(" MIG ") != std::string::npos ||
      card.cuda.uuid.starts_with("MIG-")) {
    return "a MIG slice";
  }
  const bool grid = card.cuda.name.starts_with("GRID ") || card.board.name.starts_with("GRID ");
  if (grid ||
      card.board.virtualization.Or(nvml::Virtualization::kNone) == nvml::Virtualization::kVirtualGpu) {
    return "a virtual GPU";
  }
  if (!facts.host.limiters.empty()) {
    const auto& [what, value] = *facts.host.limiters.begin();
    return fmt::format("a limiter ({}{}{})", what, value.empty() ? "" : "=", value);
  }
  return "";
}

}  // namespace vramtrace::doctor
