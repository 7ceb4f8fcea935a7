#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/finding.h"
#include "analyzer/report/units.h"

namespace vramtrace::diagnose {
namespace {

constexpr Row kRows[] = {
#define VRAMTRACE_DIAGNOSIS(id, key, title, signature, needs, confidence, limits, function) \
  Row{id, key, title, signature, needs, confidence, limits, function},
#include "analyzer/diagnose/diagnoses.def"
#undef VRAMTRACE_DIAGNOSIS
};

}  // namespace

std::span<const Row> Rows() { return kRows; }

std::string Size(uint64_t bytes) { return report::Size(bytes); }

std::string Percent(uint64_t part, uint64_t whole) {
  return report::Share(static_cast<double>(part), static_cast<double>(whole));
}

bool Material(const Evidence& evidence, uint64_t bytes, double share) {
  return bytes > 0 && static_cast<double>(bytes) >= share * static_cast<double>(evidence.used);
}

void Claim(Finding* finding, const LiveRow& row) { finding->blocks.push_back(row.index); }

uint64_t ClaimedBytes(const Evidence& evidence, const Finding& finding) {
  uint64_t bytes = 0;
  for (const size_t index : finding.blocks) bytes += evidence.snapshot.blocks[index].block.TensorBytes();
  for (const Part& part : finding.parts) bytes += part.bytes;
  return bytes;
}

void AdviseHalfBatch(const Evidence& evidence, Finding* finding) {
  if (evidence.batch < 2) return;
  Remedy remedy;
  remedy.change = fmt::format("batch {} instead of {}", evidence.batch / 2, evidence.batch);
  remedy.forecast = Forecast::kBatch;
  remedy.batch = evidence.batch / 2;
  finding->remedies.push_back(std::move(remedy));
}

Finding NotRecorded(const Evidence& /*evidence*/) {
  Finding finding;
  finding.state = State::kNotRecorded;
  return finding;
}

}  // namespace vramtrace::diagnose
