#include "analyzer/forecast/card.h"

namespace vramtrace::forecast {

Card RecordedCard(const RunFacts& facts) {
  Card card = CapacityCard(facts.total, facts);
  card.name = facts.gpu;
  const catalogue::Gpu* gpu = catalogue::FindGpu(facts.gpu);
  if (gpu != nullptr) card.id = gpu->id;
  return card;
}

Card CatalogueCard(const catalogue::Gpu& gpu, const RunFacts& facts) {
  Card card;
  card.id = gpu.id;
  card.name = gpu.device_name;
  if (const auto totals = catalogue::TotalsOf(gpu)) card.total = totals->cuda_bytes;
  const catalogue::Gpu* recorded = catalogue::FindGpu(facts.gpu);
  if (recorded == &gpu && facts.elsewhere != 0) {
    card.elsewhere = facts.elsewhere;
    card.elsewhere_basis = facts.simulated ? "modelled" : "recorded";
    return card;
  }
  const catalogue::ContextCharge context = catalogue::ContextOf(gpu);
  const Bytes libraries =
      facts.elsewhere > facts.context && facts.context != 0 ? facts.elsewhere - facts.context : 0;
  card.elsewhere = context.bytes + libraries;
  card.elsewhere_basis = context.basis == catalogue::Basis::kMeasured ? "measured" : "assumed";
  return card;
}

Card CapacityCard(Bytes total, const RunFacts& facts) {
  Card card;
  card.total = total;
  card.elsewhere = facts.elsewhere;
  card.elsewhere_basis = facts.simulated ? "modelled" : "recorded";
  return card;
}

}  // namespace vramtrace::forecast
